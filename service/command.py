"""`scoregate-server [--config FILE] [--check]`: load, then serve."""

import argparse
import logging
import sys
from pathlib import Path
from typing import NoReturn

from models.contract import CheckpointError
from models.plugins import PluginError
from models.reason import in_short
from service import __version__
from service.check import check
from service.errors import ScoregateError
from service.launch import WRONG, serve
from service.logs import configure_logging
from service.serving.loading import load_models
from service.settings import SettingsError
from service.settings.load import load_settings

log = logging.getLogger("scoregate.start")


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
    except (SettingsError, PluginError, CheckpointError, ScoregateError) as exc:
        fail(str(exc))
    except Exception as exc:
        log.exception("failed")
        fail(f"a bug, or a library's fault: {in_short(exc)}")
    sys.exit(status)


def fail(line: str) -> NoReturn:
    """End the process with *line*, whatever line ends a library has put into it."""
    print(f"scoregate-server: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(WRONG)
