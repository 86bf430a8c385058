"""
Settings of commands: frozen dataclasses whose fields say what the command line shows of them.

A command is such a class and a function that takes an instance, in a notebook and on the command line.  Its
parser is made from the fields, and each setting is described once.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from scoregate.errors import InputError, named
from scoregate.records import json_or_text, number, stem, strict_json, toml_of
from scoregate.text import meant, shown

S = TypeVar("S")

CONCURRENCY = 8  # requests at the same time
ORIENT = ("as_stored", "exif")
VERSION = version("scoregate-client")  # the version of this package
GRID_HELP = "each picture is a sheet of ROWSxCOLUMNS pictures, which are scored one by one"
METRIC = "vqascore"  # the default


class SettingError(ValueError):
    """The text of a setting cannot be used; the message says what it has to be."""


@dataclass(frozen=True)
class Setting:
    """
    What the command line shows of a setting: `name: Annotated[type, Setting("a description")] = default`.

    Attributes:
        help: a description.
        flags: names; by default `--` and the name of the field.
        metavar: of its value.
        parse: returns the value of a text; raises `SettingError` or another `ValueError`.  By default that of
            the type, if it is a path.
        choices: of values; by default those of the type, if it is a literal.
        several: it may be given several times, and is a tuple.
        commas: a text has several names, with commas between them.
        positional: it has no flag.
        nargs: of a positional argument.
        excludes: of settings with the same name here, one may be given.
        group: the title that it stands under, with others.
        option: whether `add_settings` declares it; if not, the command has an argument of its own for it.
        column: whether it names columns of a table, for the error about a missing one.
    """

    help: str
    flags: Sequence[str] = ()
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    choices: Sequence[Any] | None = None
    several: bool = False
    positional: bool = False
    nargs: str | None = None
    excludes: str | None = None
    group: str | None = None
    option: bool = True
    column: bool = False
    commas: bool = False


@dataclass(frozen=True)
class Column(Setting):
    """A column of a table; a default that is a name is named in its help."""

    metavar: str | None = "COLUMN"
    column: bool = True


@dataclass(frozen=True)
class GeneratorColumn(Column):
    """The column of generators; `--model` is its name in papers."""

    flags: Sequence[str] = ("--generator", "--model")


@dataclass(frozen=True)
class MetricName(Column):
    """A metric: its name, which in tables is that of a column."""

    flags: Sequence[str] = ("-m", "--metric")
    metavar: str | None = "METRIC"


@dataclass(frozen=True)
class MetricNames(MetricName):
    """Several metrics."""

    several: bool = True
    commas: bool = True


@dataclass(frozen=True)
class OptionsByMetric(Setting):
    """Options of metrics, by metric; the command line has them one by one, and as JSON."""


Orient = Annotated[
    str | None,
    Setting(
        "rotate pictures as their EXIF data says, or not (default: as the service is set)", choices=ORIENT
    ),
]
Strict = Annotated[bool, Setting("a score that the service warns about is an error")]


@cache
def declared(kind: type) -> dict[str, tuple["Field[Any]", Setting]]:
    """Return the fields of a class that are settings, by name, each with what is shown of it."""
    found = {}
    for each in fields(kind):
        if get_origin(each.type) is Annotated:
            of, setting = get_args(each.type)
            parse = setting.parse or (Path if Path in (of, *get_args(of)) else None)
            choices = setting.choices or (get_args(of) if get_origin(of) is Literal else None)
            found[each.name] = each, replace(setting, parse=parse, choices=choices)
    return found


def settings_in(kind: type[S], values: Mapping[str, Any]) -> S:
    """
    Return the settings of these *values*, in which texts are parsed as those of the command line are.

    Raises:
        InputError: there is no such setting, a value cannot be used, or one is missing.
    """
    known = declared(cast(type, kind))
    for name in values.keys() - known.keys():
        raise InputError(f"{name}: no such setting{meant(name, known) or ';'} there are {', '.join(known)}")
    required = [name for name, (each, _) in known.items() if each.default is each.default_factory is MISSING]
    if missing := [name for name in required if name not in values]:
        raise InputError(f"{missing[0]} is missing")
    return kind(**{name: value_of(*known[name], value) for name, value in values.items()})


def value_of(known: "Field[Any]", setting: Setting, value: Any) -> Any:
    """Return the value of a setting, which may be a text.  Raises `InputError` if it cannot be used."""
    of, _ = get_args(known.type)
    if value is None:
        return value
    if of is bool:
        if not isinstance(value, bool):
            raise InputError(f"{known.name}: {value!r} is neither true nor false")
        return value

    def one(each: Any) -> Any:
        if isinstance(each, bool | list | Mapping):
            raise ValueError("neither a text nor a number")
        if isinstance(each, str | int | float):
            each = (setting.parse or str)(str(each))
        if setting.choices and each not in setting.choices:
            raise ValueError(f"choose from {', '.join(setting.choices)}")
        return each

    try:
        if get_origin(of) is Mapping:
            if not isinstance(value, Mapping):
                raise ValueError("no mapping, such as {'NAME': …}")
            return {name: one(each) if setting.parse else each for name, each in value.items()}
        if setting.several:
            values = tuple(map(one, value if isinstance(value, list | tuple) else [value]))
            return tuple(metric_names(values)) if setting.commas else values
        return one(value)
    except (ValueError, TypeError, AttributeError) as exc:
        raise InputError(f"{known.name}: {value!r}: {exc}") from None


def name_and_path(text: str) -> tuple[str, str]:
    """
    Split `NAME=PATH` at the first sign before a file, as in `cfg=7=a.jsonl`, else at the first one.

    The name of another text, and of one that is itself a path that exists, is empty.
    """
    before, _, after = text.partition("=")
    if not (before and after) or Path(text).exists():
        return "", text
    parts = text.split("=")
    splits = [("=".join(parts[:place]), "=".join(parts[place:])) for place in range(1, len(parts))]
    return next((each for each in splits if each[1] and Path(each[1]).exists()), splits[0])


def generator_paths(texts: Sequence[str]) -> dict[str, Path]:
    """
    Return the path of each generator by its name: `NAME=PATH`, or a path that names it.

    Raises:
        InputError: two have one name.
    """
    found: dict[str, Path] = {}
    for text in texts:
        name, after = name_and_path(text)
        path = Path(after)
        name = name or (stem(path) if path.is_file() else path.resolve().name)
        if name in found:
            raise InputError(f"{found[name]} and {path} are both named {shown(name)}: name one as NAME=PATH")
        found[name] = path
    return found


def metric_options(
    texts: Sequence[str], options: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """
    Return options of metrics, by metric, with those in *texts* of the form METRIC.OPTION=VALUE.

    Raises:
        InputError: a text has another form, or its value is a file that is not valid.
    """
    found = {metric: dict(values) for metric, values in options.items()}
    for text in texts:
        name, equals, value = text.partition("=")
        metric, dot, option = name.rpartition(".")  # the metric may be an output: METRIC.OUTPUT
        if not (equals and dot and metric and option):
            raise InputError(f"{named('option', shown(text))}: it has the form METRIC.OPTION=VALUE")
        found.setdefault(metric, {})[option] = option_value(value)
    return found


def option_value(text: str) -> Any:
    """Return the table in the file `@FILE.toml`; another value that is not JSON is a text."""
    found = name_or_table(text)
    return json_or_text(found) if isinstance(found, str) else found


def name_or_table(text: str) -> Any:
    """Return the table in the file `@FILE.toml`, or another text itself.  Raises `InputError`."""
    if not (text.startswith("@") and text.endswith(".toml")):
        return text
    table = toml_of(Path(text[1:]))
    try:
        return strict_json(json.dumps(table))
    except (TypeError, ValueError) as exc:
        raise InputError(f"{text[1:]}: a value is none of JSON ({exc})") from None


def metric_names(texts: Sequence[str]) -> list[str]:
    """Return the names in texts such as `dsg,ocr`, each once.  Raises `InputError` if these have none."""
    names = (name.strip() for text in texts for name in text.split(","))
    found = list(dict.fromkeys(filter(None, names)))
    if texts and not found:
        raise InputError("no metric is named")
    return found


def json_object(text: str) -> dict[str, dict[str, Any]]:
    """Parse options by metric."""
    try:
        value = strict_json(text)
    except ValueError as exc:
        raise SettingError(f"not JSON ({exc})") from exc
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise SettingError('an object of objects, such as {"vqascore": {"output": "logit"}}')
    return value


def seconds(text: str) -> float:
    """Return a time above 0."""
    value = float(text)
    if not (isfinite(value) and value > 0):
        raise SettingError("a time is a number of seconds above 0")
    return value


def whole(text: str) -> int:
    """Return a whole number from 1."""
    value = int(text)
    if value < 1:
        raise SettingError("at least 1")
    return value


Concurrency = Annotated[
    int, Setting("requests at the same time (default %(default)s)", metavar="N", parse=whole)
]


def finite(text: str) -> float:
    """Return a number that is neither infinite nor NaN."""
    value = float(text)
    if not isfinite(value):
        raise SettingError("a finite number")
    return value


def count(text: str) -> int:
    """Return a whole number from 0."""
    value = int(text)
    if value < 0:
        raise SettingError("a whole number from 0")
    return value


def share(text: str) -> float:
    """Return a number above 0, up to 1."""
    value = float(text)
    if not 0 < value <= 1:
        raise SettingError("a number above 0, up to 1")
    return value


def ends_of_scale(text: str) -> tuple[float, float]:
    """Return the two numbers, the lower one first."""
    low, colon, high = text.partition(":")
    try:
        ends = number(low), number(high)
    except ValueError:
        ends = 0.0, 0.0
    if not (colon and isfinite(ends[0]) and isfinite(ends[1]) and ends[0] < ends[1]):
        raise SettingError("a scale is two numbers, such as 1:5")
    return ends
