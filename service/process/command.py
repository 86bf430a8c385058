"""`scoregate-server [serve|check|deploy|questions]`: load, then serve, unless another command is given."""

import argparse
import logging
import sys
from pathlib import Path
from typing import NoReturn

from models.core.contract import CheckpointError, Temporary
from models.core.reason import in_short
from models.families.plugins import PluginError
from service import __version__
from service.core.errors import ScoregateError
from service.core.settings import SettingsError
from service.observability.logs import configure_logging
from service.process.check import check
from service.process.deploy import deploy
from service.process.exchange import DONE, add_arguments, exchange
from service.process.launch import LATER, WRONG, serve
from service.serving.loading import load_models
from service.wiring.load import load_settings

log = logging.getLogger("scoregate.start")


def main() -> None:
    """Run the command.  If it fails, print one line and exit with the status of the error."""
    configure_logging()
    try:
        status = run(parser().parse_args())
    except Temporary as exc:
        fail(str(exc), LATER)
    except (SettingsError, PluginError, CheckpointError, ScoregateError) as exc:
        fail(str(exc))
    except Exception as exc:
        log.exception("failed")
        fail(f"a bug, or a library's fault: {in_short(exc)}")
    if status:
        sys.exit(status)


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    top = argparse.ArgumentParser(prog="scoregate-server", description=__doc__)
    about = "TOML profile; the demo profile by default"
    top.add_argument("--config", type=Path, help=about)
    top.add_argument("--check", action="store_true", help="the same as the command check")
    top.add_argument("--version", action="version", version=__version__)
    common = argparse.ArgumentParser(add_help=False)
    # If it is not given after the command, the value from before the command stays.
    common.add_argument("--config", type=Path, help=about, default=argparse.SUPPRESS)
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", parents=[common], help="serve until SIGTERM (the default)")
    commands.add_parser("check", parents=[common], help="say what would be loaded, and load nothing")
    commands.add_parser("deploy", parents=[common], help="start or update the models on a Ray cluster")
    add_arguments(commands.add_parser("questions", help="question sets as files"), common)
    return top


def run(arguments: argparse.Namespace) -> int:
    """Run the command, and return the exit status."""
    settings = load_settings(arguments.config)
    if arguments.command == "questions":
        return exchange(settings, arguments)
    if arguments.check or arguments.command == "check":
        print(check(settings), end="")
        return DONE
    if arguments.command == "deploy":
        return deploy(settings)
    return serve(settings, lambda: load_models(settings))


def fail(line: str, status: int = WRONG) -> NoReturn:
    """End the process with *line*, whatever line ends a library has put into it."""
    print(f"scoregate-server: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(status)
