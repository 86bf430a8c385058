"""What commands share: exit codes and the errors that lead to them, arguments, and the client."""

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from http import HTTPStatus
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple, NoReturn, TypeVar, cast, get_args

import scoregate
from scoregate.errors import InputError
from scoregate.local import NOT_LOADED, Service
from scoregate.settings import (
    VERSION,
    OptionsByMetric,
    SettingError,
    declared,
    json_object,
    metric_names,
    metric_options,
    seconds,
)
from scoregate.text import meant, shown

OK = 0
NO_SCORE = 1  # a response, but some requested score is missing
USAGE = 2  # the call or its input is wrong, and stays wrong
UNREACHABLE = 3  # the service does not answer, or cannot now; later it may
INTERRUPTED_STATUS = 130

TEMPORARY_STATUSES = frozenset({408, 429, 502, 503})  # statuses of a service that may answer a moment later

MAX_PLACES = 3  # faults of a request that are printed
COLUMN_OPTIONS = "column_options"  # the field of arguments with the settings that name columns
FLAGS = "flags"  # the field of arguments with the flags of settings
PLOTS = (".png", ".svg", ".pdf")
TIMEOUT_S = 60.0

S = TypeVar("S")
E = TypeVar("E", bound=scoregate.ScoregateError)


class UsageError(Exception):
    """The call or its input is wrong; the message is one line for people."""


def exit_code(error: scoregate.ScoregateError) -> int:
    """Return the code that *error* of a whole call ends the command with."""
    if (
        isinstance(error, scoregate.errors.ServiceConnectionError | scoregate.errors.ServiceTimeoutError)
        or error.status in TEMPORARY_STATUSES
    ):
        return UNREACHABLE
    if error.code == NOT_LOADED:
        return USAGE
    return USAGE if 400 <= (error.status or 500) < 500 else NO_SCORE


def described(error: scoregate.ScoregateError) -> str:
    """Return *error* in one line: its code, what it says, and every place of the request that is wrong."""
    faults = error.errors or ()
    places = [f"{fault['pointer']}: {fault['detail']}" for fault in faults[:MAX_PLACES]]
    if more := len(faults) - len(places):
        places.append(f"and {more} more")
    hint = next(filter(None, map(mending, faults)), "")
    if error.status == HTTPStatus.UNAUTHORIZED:
        hint = "; set SCOREGATE_API_KEY, or --api-key"
    elif isinstance(error, scoregate.errors.ServiceConnectionError) and not error.status:
        hint = "; start a service with `make serve`, or add --local demo"
    elif error.status == HTTPStatus.NOT_FOUND and error.code == scoregate.ScoregateError.code:
        hint = "; is this another server's port? name the service with --base-url"
    return shown(f"{error.code}: " + ("; ".join(places) or error.detail) + hint)


def mending(fault: Mapping[str, Any]) -> str:
    """Return how a command mends a fault of its request, if it is one of a person's first hour."""
    if fault.get("code") == "unknown_policy" and str(fault["detail"]).endswith("has: none"):
        return "; with --local, --policy-file FILE brings policies"
    if fault.get("code") == "too_many_items" and fault["pointer"] in ("/items", "/images"):
        return "; `scoregate batch` takes any number of pictures"
    if str(fault["pointer"]).endswith("/prompt") and str(fault["detail"]).startswith("is needed"):
        return '; give it with -p "TEXT"'
    return ""


class Once(argparse.Action):
    """Store a value.  An argument that is given twice is an error, where argparse takes the last value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if isinstance(parser, CommandParser):
            if self.dest in parser.given:
                raise argparse.ArgumentError(self, "is given twice, and takes one value")
            parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


def with_notes(epilog: str, text: str | None) -> str:
    """Return *epilog* with the notes in the docstring of a command, which begin after its first line."""
    _, _, rest = inspect.cleandoc(text or "").partition("\n")
    fenced = re.compile(r"^```\w* ?(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
    notes = fenced.sub(lambda block: (f"{block[1]}:\n" if block[1] else "") + indented(block[2]), rest)
    return f"{epilog}\n\n{notes.strip()}".strip()


def indented(text: str) -> str:
    """Return the lines of a block with an indent."""
    return textwrap.indent(text, "  ").rstrip()


class CommandParser(argparse.ArgumentParser):
    """
    A parser whose messages cannot steer a terminal, and that takes no single value twice.

    Args:
        declare: declares the arguments when the parser is first used.  So a command imports its own code
            alone, and of the 300 arguments its own are built.
    """

    def __init__(
        self, *args: Any, declare: Callable[[argparse.ArgumentParser], None] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.exit_on_error = False  # see `parse_known_args`
        self.register("action", None, Once)
        self.register("action", "store", Once)
        self.given: set[str] = set()
        self._words: Sequence[str] = ()
        self._declare = declare

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise `ArgumentError` for a value that is none of the choices, with the nearest of these."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as exc:
            near = meant(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{exc.message}{near}") from None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, with no argument given yet.  An unknown argument is an error, with the nearest option."""
        self.given.clear()
        self.declare()
        self._words = sys.argv[1:] if args is None else args
        try:
            namespace, unknown = super().parse_known_args(args, namespace)
        except argparse.ArgumentError as exc:
            if isinstance(why := exc.__context__, SettingError):  # raised by the argument's type
                exc.message = str(why)
            self.error(str(exc))
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant_option()}")
        return namespace, unknown

    def _meant_option(self) -> str:
        """Return a question about the option that is most like one that is not declared."""
        options = tuple(self._option_string_actions)
        names = [word.partition("=")[0] for word in self._words if word.startswith("--")]
        wrong = (name for name in names if not any(option.startswith(name) for option in options))
        plain = [option.removeprefix("--") for option in options]  # dashes would make all alike
        return meant(next(wrong, "").removeprefix("--"), plain).replace("mean ", "mean --", 1)

    def declare(self) -> None:
        """Declare the arguments, unless they are declared."""
        if self._declare:
            self._declare(self)
            self._declare = None

    def error(self, message: str) -> NoReturn:
        missing = "required" in message  # maybe it is the mistyped one
        super().error(shown(f"{message}{self._meant_option() if missing else ''}"))


class CommandText(NamedTuple):
    """What a command does, and the words of a call of it after its name, for its help."""

    help: str
    example: str = ""  # a benchmark has it in its file, which is imported when the command is called


def add_commands(
    parser: argparse.ArgumentParser,
    dest: str,
    commands: Mapping[str, CommandText],
    declare: Callable[[str, argparse.ArgumentParser], None],
    metavar: str = "NAME",
) -> None:
    """
    Declare commands of a `CommandParser`.

    Args:
        commands: the description of each, and its example.
        declare: declares the arguments of a command when that is called.
    """
    names = parser.add_subparsers(dest=dest, required=True, metavar=metavar)
    for name, (what, example) in commands.items():
        names.add_parser(
            name,
            help=what,
            description=fill(f"{what[0].upper()}{what[1:]}."),
            epilog=example_of(f"{parser.prog} {name}", example),
            formatter_class=argparse.RawDescriptionHelpFormatter,  # an example that is broken is no command
            declare=partial(declare, name),
        )


def example_of(command: str, words: str) -> str:
    """Return the last paragraph of a command's help."""
    return f"example:\n  {command} {words}"


def add_service(parser: argparse.ArgumentParser) -> None:
    """Declare the service's arguments; without defaults, so that they may precede or follow the command."""
    group = parser.add_argument_group("the service")
    add = group.add_argument
    add(
        "--base-url",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="http://HOST:PORT or unix:/PATH, several with commas (default $SCOREGATE_BASE_URL, else"
        " http://127.0.0.1:8000)",
    )
    add(
        "--local",
        action="append",
        metavar="NAME",
        default=argparse.SUPPRESS,
        help="load this model or profile, or demo, in place of a service; may be given several times"
        " (default $SCOREGATE_LOCAL)",
    )
    add(
        "--api-key",
        metavar="KEY",
        default=argparse.SUPPRESS,
        help="better $SCOREGATE_API_KEY: other users of this machine can see arguments",
    )
    add(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        default=argparse.SUPPRESS,
        help="for a call, with its retries",
    )
    add(
        "--quiet",
        action="store_true",
        default=argparse.SUPPRESS,
        help="print results and errors alone: no progress, no warnings, no summary",
    )
    add("--version", action="version", version=f"scoregate {VERSION}")


def add_values(parser: argparse.ArgumentParser) -> None:
    """Declare options of metrics."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="METRIC.OPTION=VALUE",
        help="an option of a metric, such as vqascore.output=logit; @FILE.toml is the table in a file",
    )
    parser.add_argument(
        "--options",
        type=json_object,
        default={},
        metavar="JSON",
        help="options of metrics as JSON, by metric",
    )


def add_settings(parser: argparse.ArgumentParser, kind: type) -> None:
    """Declare the fields of a settings class."""
    groups: dict[str, Any] = {}
    columns: dict[str, Any] = parser.get_default(COLUMN_OPTIONS) or {}
    flags_of: dict[str, str] = parser.get_default(FLAGS) or {}
    for each, setting in declared(kind).values():
        if not setting.option:
            continue
        if isinstance(setting, OptionsByMetric):
            add_values(parser)
            continue
        required = each.default is MISSING
        named = f" (default {each.default})" if setting.column and isinstance(each.default, str) else ""
        more: dict[str, Any] = {"help": setting.help + named}
        if get_args(each.type)[0] is bool:
            more["action"] = "store_true"
        else:
            more |= {"metavar": setting.metavar, "type": setting.parse, "choices": setting.choices}
            more["default"] = None if required or setting.several else each.default
            more |= {"action": "append"} if setting.several and not setting.positional else {}
        to: Any = parser
        if name := setting.excludes:
            to = groups[name] = groups.get(name) or parser.add_mutually_exclusive_group()
        elif name := setting.group:
            to = groups[name] = groups.get(name) or parser.add_argument_group(name)
        if setting.positional:
            nargs = {"nargs": setting.nargs} if setting.nargs else {}
            positional = to.add_argument(each.name, **more, **nargs)
            positional.required = required  # with `*` none could stand after an option
        else:
            flags = setting.flags or [f"--{each.name.replace('_', '-')}"]
            to.add_argument(*flags, dest=each.name, required=required, **more)
            flags_of[each.name] = next((flag for flag in flags if flag.startswith("--")), flags[0])
            if setting.column:
                columns[each.name] = () if required else each.default
    parser.set_defaults(**{COLUMN_OPTIONS: columns, FLAGS: flags_of})


def column_options(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return the columns that each setting names, by itself or by its default."""
    found = {}
    for name, default in getattr(arguments, COLUMN_OPTIONS, {}).items():
        value = getattr(arguments, name) or default or []
        found[name] = [value] if isinstance(value, str) else [*value]
    return found


def with_flags(error: E, arguments: argparse.Namespace) -> E:
    """Return an error with the flags of a command in place of the names of settings."""

    flags: Mapping[str, str] = getattr(arguments, FLAGS, {})

    def flag_of(name: str, value: str | None) -> str:
        flag = flags.get(name, f"--{name.replace('_', '-')}")
        return flag if value is None else f"{flag} {value}"

    return error.with_flags(flag_of)


def settings_of(kind: type[S], arguments: argparse.Namespace, **more: Any) -> S:
    """
    Return the settings of the arguments that have their names; *more* are of other fields.

    Raises:
        InputError, OSError: an option of a metric is not valid, or its file.
    """
    values: dict[str, Any] = {}
    for name, (_, setting) in declared(cast(type, kind)).items():
        if (value := getattr(arguments, name, None)) not in (None, []):
            value = metrics_in(value) if setting.commas else value
            values[name] = tuple(value) if isinstance(value, list) else value
    if "options" in values and arguments.option:
        values["options"] = options_of(arguments)
    return kind(**values | more)


def options_of(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of both forms, by metric.  Raises `InputError`, `OSError`."""
    return metric_options(arguments.option, arguments.options)


def metrics_in(texts: Sequence[str]) -> list[str]:
    """Return the names of metrics in texts, each once.  Raises `UsageError` if these have none."""
    try:
        return metric_names(texts)
    except InputError:
        raise UsageError("-m: names no metric") from None


def service_of(arguments: argparse.Namespace, timeout_s: float = TIMEOUT_S) -> Service:
    """Return the service that the arguments name, or the models in its place."""
    names = ("base_url", "api_key", "local", "strict")
    given = {name: value for name in names if (value := getattr(arguments, name, None)) is not None}
    return Service(timeout_s=getattr(arguments, "timeout", timeout_s), **given)


def check_plot(path: Path) -> None:
    """Raise `UsageError` if nothing could be drawn to *path*."""
    if path.suffix.lower() not in PLOTS:
        raise UsageError(f"{path}: the name of a plot must end in {', '.join(PLOTS)}")
    figure()


def figure() -> Any:
    """Return an empty figure that needs no display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise UsageError(
            "a plot needs Matplotlib: pip install './client[plot]' in a checkout of Scoregate"
        ) from exc
    return Figure(layout="constrained")
