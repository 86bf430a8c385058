"""`python -m service [--config FILE] [--check]`: load, then serve."""

import argparse
import sys
from pathlib import Path

import uvicorn

from models.base import CheckpointError
from service import __version__
from service.app import create_app
from service.check import check
from service.errors import ScoregateError
from service.logs import configure_logging
from service.serving.runtime import load_models
from service.settings import SettingsError, load_settings


def main() -> None:
    """Serve until SIGTERM; one clear line and exit status 2 where that can't begin."""
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
        app = create_app(settings, load_models(settings))
    except (SettingsError, CheckpointError, ScoregateError) as exc:
        print(f"scoregate-server: {exc}", file=sys.stderr)
        sys.exit(2)
    uvicorn.run(
        app,
        host=settings.server.host,
        port=settings.server.port,
        timeout_graceful_shutdown=settings.server.grace_s,
        log_config=None,
    )


if __name__ == "__main__":
    main()
