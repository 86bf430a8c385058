"""Arguments that commands share, and the client for them."""

import argparse
import json
from importlib.metadata import version
from math import isfinite
from typing import Any, NoReturn

import scoregate
from scoregate.cli.exits import UsageFault
from scoregate.text import shown

METRIC = "vqascore"
ORIENT = ("as_stored", "exif")
TIMEOUT_S = 60.0
VERSION = version("scoregate-client")


class Once(argparse.Action):
    """Store a value.  An argument that is given twice is an error, where argparse takes the last value."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if isinstance(parser, Parser):
            if self.dest in parser.given:
                raise argparse.ArgumentError(self, "is given twice, and takes one value")
            parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """A parser whose messages cannot steer a terminal, and that takes no single value twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register("action", None, Once)
        self.register("action", "store", Once)
        self.given: set[str] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, with no argument given yet."""
        self.given.clear()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        super().error(shown(message))


def add_service(parser: argparse.ArgumentParser) -> None:
    """Declare the service's arguments; without defaults, so that they may precede or follow the command."""
    group = parser.add_argument_group("the service")
    add = group.add_argument
    add(
        "--base-url",
        metavar="URL",
        default=argparse.SUPPRESS,
        help="default $SCOREGATE_BASE_URL, else http://127.0.0.1:8000",
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
    add("--version", action="version", version=f"scoregate {VERSION}")


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Declare several metrics, and their options."""
    parser.add_argument(
        "-m",
        "--metric",
        action="append",
        dest="metrics",
        metavar="METRIC",
        help=f"may be given several times (default {METRIC})",
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare options of metrics, and the rotation of pictures."""
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="METRIC.OPTION=VALUE",
        help="an option of a metric, such as vqascore.output=logit",
    )
    parser.add_argument(
        "--options",
        type=json_object,
        default={},
        metavar="JSON",
        help="options of metrics as JSON, by metric",
    )
    parser.add_argument(
        "--orient",
        choices=ORIENT,
        help="rotate pictures as their EXIF data says, or not (default: as the service is set)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="a score that the service warns about is an error"
    )


def seconds(text: str) -> float:
    """Return a time above 0."""
    value = float(text)
    if not (isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError("a time is a number of seconds above 0")
    return value


def whole(text: str) -> int:
    """Return a whole number from 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


def finite(text: str) -> float:
    """Return a number that is neither infinite nor NaN."""
    value = float(text)
    if not isfinite(value):
        raise argparse.ArgumentTypeError("a finite number")
    return value


def json_object(text: str) -> dict[str, dict[str, Any]]:
    """Parse options by metric."""
    try:
        value = strict_json(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"not JSON ({exc})") from exc
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise argparse.ArgumentTypeError('an object of objects, such as {"vqascore": {"output": "logit"}}')
    return value


def strict_json(text: str) -> Any:
    """Parse JSON without NaN and infinities.  Raises `ValueError`."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def options_of(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return the options of both forms, by metric; a value that is not JSON is a text."""
    options = {metric: dict(values) for metric, values in arguments.options.items()}
    for text in arguments.option:
        name, equals, value = text.partition("=")
        metric, dot, option = name.partition(".")
        if not (equals and dot and metric and option):
            raise UsageFault(f"--option {shown(text)}: it has the form METRIC.OPTION=VALUE")
        options.setdefault(metric, {})[option] = json_or_text(value)
    return options


def json_or_text(value: str) -> Any:
    """Parse *value* as JSON; return the text itself if it is not JSON."""
    try:
        return strict_json(value)
    except ValueError:
        return value


def metrics_of(arguments: argparse.Namespace) -> list[str]:
    """Return the metrics in the order given, each once."""
    return list(dict.fromkeys(arguments.metrics or [METRIC]))


def connected(arguments: argparse.Namespace, timeout_s: float = TIMEOUT_S, **more: Any) -> scoregate.Client:
    """Return a client of the service, a context manager."""
    given = vars(arguments)
    more.setdefault("strict", given.get("strict", False))
    timeout_s = given.get("timeout", timeout_s)
    try:
        return scoregate.Client(
            given.get("base_url"), api_key=given.get("api_key"), timeout_s=timeout_s, **more
        )
    except ValueError as exc:  # the address is not valid
        raise UsageFault(str(exc)) from exc
