"""
Settings of commands: frozen dataclasses whose fields say what the command line shows of them.

A command is such a class and a function that takes an instance, in a notebook and on the command line.  Its
parser is made from the fields, and each setting is described once.
"""

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib.metadata import version
from math import isfinite
from typing import Any

from scoregate.records import number

VERSION = version("scoregate-client")  # of this package


class BadSetting(ArgumentTypeError, ValueError):
    """The text of a setting cannot be used; argparse prints the message, which says what it has to be."""


@dataclass(frozen=True, slots=True)
class Shown:
    """
    What the command line shows of a setting.

    Attributes:
        help: a description.
        flags: names; by default `--` and the name of the field.
        metavar: of its value.
        parse: returns the value of a text; raises `BadSetting` or another `ValueError`.
        choices: of values.
        several: it may be given several times, and is a tuple.
        nargs: of a positional argument, which has no flag.
        excludes: of settings with the same name here, one may be given.
    """

    help: str
    flags: Sequence[str] | None = None
    metavar: str | None = None
    parse: Callable[[str], Any] | None = None
    choices: Sequence[Any] | None = None
    several: bool = False
    nargs: str | None = None
    excludes: str | None = None


def setting(
    help: str,
    *flags: str,
    default: Any = MISSING,
    metavar: str | None = None,
    parse: Callable[[str], Any] | None = None,
    choices: Sequence[Any] | None = None,
    several: bool = False,
    nargs: str | None = None,
    excludes: str | None = None,
) -> Any:
    """Return a field of a settings class that the command line shows; arguments as of `Shown`."""
    shown = Shown(help, flags or None, metavar, parse, choices, several, nargs, excludes)
    return field(default=default, metadata={"shown": shown}, kw_only=True)


def in_column(help: str, *flags: str, default: Any = MISSING, several: bool = False) -> Any:
    """Return the field of a table's column; a default that is a name is named in its help."""
    named = f"{help} (default {default})" if isinstance(default, str) else help
    return setting(named, *flags, default=default, metavar="COLUMN", several=several)


def shown_fields(kind: type) -> list[tuple["Field[Any]", Shown]]:
    """Return the fields of a settings class that the command line shows, in their order."""
    return [(each, each.metadata["shown"]) for each in fields(kind) if "shown" in each.metadata]


def seconds(text: str) -> float:
    """Return a time above 0."""
    value = float(text)
    if not (isfinite(value) and value > 0):
        raise BadSetting("a time is a number of seconds above 0")
    return value


def whole(text: str) -> int:
    """Return a whole number from 1."""
    value = int(text)
    if value < 1:
        raise BadSetting("at least 1")
    return value


def finite(text: str) -> float:
    """Return a number that is neither infinite nor NaN."""
    value = float(text)
    if not isfinite(value):
        raise BadSetting("a finite number")
    return value


def count(text: str) -> int:
    """Return a whole number from 0."""
    value = int(text)
    if value < 0:
        raise BadSetting("a whole number from 0")
    return value


def share(text: str) -> float:
    """Return a number above 0, up to 1."""
    value = float(text)
    if not 0 < value <= 1:
        raise BadSetting("a number above 0, up to 1")
    return value


def scale(text: str) -> tuple[float, float]:
    """Return two numbers, the lower one first."""
    low, colon, high = text.partition(":")
    try:
        ends = number(low), number(high)
    except ValueError:
        ends = 0.0, 0.0
    if not (colon and isfinite(ends[0]) and isfinite(ends[1]) and ends[0] < ends[1]):
        raise BadSetting("a scale is two numbers, such as 1:5")
    return ends
