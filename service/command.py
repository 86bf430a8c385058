"""`python -m service [--config FILE] [--check]`: load, then serve."""

import argparse
import sys
from pathlib import Path

from models.contract import CheckpointError
from models.plugins import PluginError
from service import __version__
from service.check import check
from service.errors import ScoregateError
from service.launch import WRONG, serve
from service.logs import configure_logging
from service.serving.loading import load_models
from service.settings import SettingsError
from service.settings.load import load_settings


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
        print(f"scoregate-server: {exc}", file=sys.stderr)
        sys.exit(WRONG)
    sys.exit(status)


if __name__ == "__main__":
    main()
