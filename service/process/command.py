"""`scoregate-server [serve|check|doctor|deploy|questions]`: load, then serve, if no command is given."""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from models.core.contract import CheckpointError, Temporary
from models.core.family import Loaded
from models.core.machine import THIS_MACHINE, Machine
from models.core.messages import in_short
from models.families.names import accepted, exact_roles
from models.families.registry import PluginError
from service import __version__
from service.core.errors import ScoregateError
from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.observability.logs import configure_logging
from service.process import LATER, WRONG
from service.process.check import check
from service.process.deploy import deploy
from service.process.doctor import doctor
from service.process.exchange import DONE, add_arguments, exchange
from service.process.model_names import Tree, as_toml, profile_of
from service.process.needs import check_devices, needs
from service.process.ready import ready
from service.serving.loading import load_models
from service.wiring.load import load_settings, meant, settings_of

log = logging.getLogger("scoregate.start")

# What each command does, and the words of a call of it.
COMMANDS = {
    "serve": ("serve until SIGTERM (the default)", "--config gpu-24gb"),
    "check": ("say what would be loaded, and load nothing", "--config gpu-24gb"),
    "doctor": ("check this machine and the servers of a profile", "--config gpu-24gb"),
    "deploy": ("start or update the models on a Ray cluster", "--config profile.toml"),
    "questions": ("question sets as files", "export sets.jsonl.gz"),
}
MODEL_ARGUMENTS = ("devices", "dtype", "write_profile")  # arguments that only --model takes

Load = Callable[[Settings], Mapping[str, Loaded]]


def main(load: Load = load_models) -> int:
    """Run the command of this process, and return its exit status."""
    configure_logging()
    return status_of(sys.argv[1:], load)


def status_of(words: Sequence[str], load: Load = load_models, machine: Machine = THIS_MACHINE) -> int:
    """
    Run the command of *words*, and return its exit status.  If it fails, print one line.

    Args:
        load: loads the models that are to be served.

    Raises:
        SystemExit: *words* are no command, or its help is printed.
    """
    try:
        return run(parser().parse_args(words), load, machine)
    except Temporary as exc:
        return failed(str(exc), LATER)
    except (SettingsError, PluginError, CheckpointError, ScoregateError) as exc:
        return failed(str(exc))
    except Exception as exc:
        log.exception("failed")
        return failed(f"a bug, or a library's fault: {in_short(exc)}")


class ServerParser(argparse.ArgumentParser):
    """A parser that names the nearest command, option or value for one that it does not have."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse.  An unknown option before a command is an error, with the nearest one."""
        commands = {name for each in self._actions if isinstance(each.choices, dict) for name in each.choices}
        options = [*self._option_string_actions]
        for word in takewhile(lambda word: word not in commands, args or ()):
            name = word.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in options):
                self.error(f"unrecognized argument: {word}{meant(name, options)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise `ArgumentError` for a value that is none of the choices, with the nearest of these."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as exc:
            near = meant(str(value), [*map(str, action.choices or ())])
            raise argparse.ArgumentError(action, f"{exc.message}{near}") from None


def parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    top = ServerParser(prog="scoregate-server", description=__doc__)
    about = "TOML profile, or the name of a shipped one such as gpu-24gb; the demo profile by default"
    top.add_argument("--config", type=Path, help=about)
    top.add_argument("--check", action="store_true", help="the same as the command check")
    top.add_argument("--version", action="version", version=__version__)
    common = ServerParser(add_help=False)
    # If it is not given after the command, the value from before the command stays.
    common.add_argument("--config", type=Path, help=about, default=argparse.SUPPRESS)
    declare = top.add_subparsers(dest="command", metavar="COMMAND").add_parser
    found = {
        name: declare(
            name,
            parents=[] if name == "questions" else [common],  # its own commands have them
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=f"example:\n  {top.prog} {name} {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for name, (what, example) in COMMANDS.items()
    }
    for name in ("serve", "check", "doctor"):
        add_named_models(found[name])
    found["serve"].add_argument(
        "--write-profile", type=Path, metavar="FILE", help="write the profile, then serve"
    )
    add_arguments(found["questions"], common)
    return top


def add_named_models(parser: argparse.ArgumentParser) -> None:
    """Add the address, and the arguments that stand in place of a profile."""
    parser.add_argument("--host", help="address to listen on, in place of server.host")
    parser.add_argument("--port", type=int, help="in place of server.port; 0 picks a free one")
    parser.add_argument("--uds", metavar="PATH", help="Unix socket, in place of a host and a port")
    group = parser.add_argument_group("models by name, in place of a profile")
    group.add_argument("--model", action="append", metavar="NAME", help=accepted())
    group.add_argument("--devices", help='"all", or names with commas, such as cuda:0,cuda:1')
    group.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16"],
        default="",
        help=f"default: bfloat16 on a GPU, but float32 in the roles {', '.join(exact_roles())}",
    )


def tree_of(arguments: argparse.Namespace, machine: Machine) -> Tree:
    """Return the profile that the arguments stand for."""
    return profile_of(arguments.model, address_of(arguments), devices_in(arguments), arguments.dtype, machine)


def devices_in(arguments: argparse.Namespace) -> list[str]:
    """Return the devices that the arguments name."""
    return arguments.devices.split(",") if arguments.devices else []


def address_of(arguments: argparse.Namespace) -> Tree:
    """Return the settings of the section `server` that the arguments have."""
    given = {key: getattr(arguments, key, None) for key in ("host", "port", "uds")}
    return {key: value for key, value in given.items() if value is not None}


def serve_named(arguments: argparse.Namespace, load: Load, machine: Machine) -> int:
    """Serve the models that the arguments name, and return the exit status."""
    from service.process.launch import serve  # the web app, which takes long to import

    check_devices(devices_in(arguments), machine)  # a wrong device needs no call of the hub
    tree = tree_of(arguments, machine)
    profile = as_toml(tree) + "\n"  # the environment's overrides are not part of a profile
    settings = settings_of(tree, "--model")
    if arguments.write_profile:
        write(arguments.write_profile, profile)
    print(needs(settings, machine), flush=True)
    return serve(settings, lambda: load(settings), lambda *given: print(ready(*given), flush=True))


def write(file: Path, text: str) -> None:
    """Write *text* to a new *file*.  Raises `SettingsError` if it exists or cannot be written."""
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as exc:
        raise SettingsError(f"--write-profile {file}: {exc.strerror}") from exc
    except UnicodeEncodeError as exc:
        file.unlink()
        raise SettingsError(f"--write-profile {file}: the name of a folder is not UTF-8, as TOML is") from exc


def run(arguments: argparse.Namespace, load: Load, machine: Machine) -> int:
    """Run the command, and return the exit status."""
    check_arguments(arguments)
    if arguments.command == "serve" and arguments.model and not arguments.check:
        return serve_named(arguments, load, machine)
    settings = settings_in(arguments, machine)
    if arguments.command == "doctor":
        return doctor(settings, machine)
    if arguments.command == "questions":
        return exchange(settings, arguments)
    if is_check(arguments):
        print(check(settings, machine), end="")
        return DONE
    if arguments.command == "deploy":
        return deploy(settings)
    from service.process.launch import serve  # the web app, which takes long to import

    return serve(settings, lambda: load(settings))


def check_arguments(arguments: argparse.Namespace) -> None:
    """Raise `SettingsError` if arguments contradict each other."""
    if getattr(arguments, "model", None):
        if arguments.config:
            raise SettingsError("--config and --model: a profile has its own models; give one of them")
    elif alone := [name for name in MODEL_ARGUMENTS if getattr(arguments, name, None)]:
        raise SettingsError(f"--{alone[0]}: needs --model NAME".replace("_", "-"))


def settings_in(arguments: argparse.Namespace, machine: Machine) -> Settings:
    """Return the settings that the arguments stand for.  Raises `SettingsError` as `load_settings`."""
    if getattr(arguments, "model", None):
        return settings_of(tree_of(arguments, machine), "--model")
    address = {f"SCOREGATE_SERVER__{key.upper()}": str(value) for key, value in address_of(arguments).items()}
    return load_settings(arguments.config, over=address)


def is_check(arguments: argparse.Namespace) -> bool:
    """Return True if nothing is to be loaded."""
    return bool(arguments.check) or arguments.command == "check"


def failed(line: str, status: int = WRONG) -> int:
    """Print *line*, whatever line ends a library has put into it, and return *status*."""
    print(f"scoregate-server: {' '.join(line.split())}", file=sys.stderr)
    return status
