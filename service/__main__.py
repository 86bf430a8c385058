"""`python -m service [--config FILE] [--check]`: load, then serve."""

import argparse
import gc
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from models.base import CheckpointError
from service import __version__
from service.app import create_app
from service.check import check
from service.errors import ScoregateError
from service.logs import configure_logging
from service.serving.runtime import Loaded, load_models
from service.settings import Settings, SettingsError, load_settings

WRONG, BROKEN = 2, 3  # exit statuses: what was configured can't be served; what was served can't any more


def main() -> None:
    """Serve until SIGTERM; one clear line and an exit status of its own where that can't be."""
    parser = argparse.ArgumentParser(prog="scoregate-server", description=__doc__)
    parser.add_argument("--config", type=Path, help="TOML profile; the demo profile by default")
    parser.add_argument("--check", action="store_true", help="say what would be loaded, and load nothing")
    parser.add_argument("--version", action="version", version=__version__)
    arguments = parser.parse_args()
    configure_logging()
    try:
        settings = load_settings(arguments.config)
        if arguments.check:
            print(check(settings), end="")
            return
        status = serve(settings, load_models(settings))
    except (SettingsError, CheckpointError, ScoregateError) as exc:
        print(f"scoregate-server: {exc}", file=sys.stderr)
        sys.exit(WRONG)
    sys.exit(status)


def serve(settings: Settings, models: Mapping[str, Loaded]) -> int:
    """The exit status: 0 after SIGTERM or Ctrl-C, once everything that was accepted is answered."""
    broken: list[str] = []

    def on_broken(reason: str) -> None:
        """A supervisor can restart the process; nothing else helps."""
        broken.append(reason)
        server.should_exit = True

    app = create_app(settings, models, on_broken)
    # What is there now stays: a pass of the collector over all modules would be somebody's latency.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        host=settings.server.host,
        port=settings.server.port,
        timeout_graceful_shutdown=settings.server.grace_s,
        log_config=None,
    )
    server = Server(config)
    server.run()
    gc.unfreeze()  # at the end modules are cleared, and some complain of objects that are left
    if broken:
        print(f"scoregate-server: {broken[0]}", file=sys.stderr)
    return BROKEN if broken else 0 if server.started else WRONG


class Server(uvicorn.Server):
    """Ends by itself after a signal; uvicorn's own dies of the signal once it has finished."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM and SIGINT ask for the end while serving."""
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


if __name__ == "__main__":
    main()
