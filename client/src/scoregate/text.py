"""Text for a terminal: nothing in it can steer a terminal, and columns stand straight."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, signature
from itertools import islice
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TextIO, TypeVar, get_args

from tqdm import tqdm

STEERING = {"Cc", "Cs", "Zl", "Zp"}  # controls, lone surrogates, separators of lines
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # bidi
GAP = "  "

Owner = TypeVar("Owner")
P = ParamSpec("P")
T = TypeVar("T")


def shown(text: object) -> str:
    r"""Return *text* in one line; characters that would steer a terminal as escapes such as `\x1b`."""
    return "".join(
        ascii(char)[1:-1] if char in TURNING or unicodedata.category(char) in STEERING else char
        for char in str(text)
    )


def width(text: str) -> int:
    """Return the number of terminal columns of *text*."""
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Iterable[str] = ()) -> str:
    """
    Return rows below their heads, in columns; a column without any cell is left out.

    Args:
        right: heads of the columns that stand at the right, as numbers do.
    """
    columns = zip(*([shown(cell) for cell in row] for row in [heads, *rows]), strict=True)
    kept = [column for column in columns if any(column[1:])]
    wide = [max(map(width, column)) for column in kept]
    to_the_right = [column[0] in set(right) for column in kept]
    lines = []
    for row in zip(*kept, strict=True):
        padded = (
            " " * (most - width(cell)) + cell if at_right else cell + " " * (most - width(cell))
            for cell, most, at_right in zip(row, wide, to_the_right, strict=True)
        )
        lines.append(GAP.join(padded).rstrip())
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Format a score with four digits; a dash for None."""
    return "–" if value is None else f"{value:.4g}" if abs(value) >= 1000 else fixed(value)


def fixed(value: float, digits: int = 4) -> str:
    """Format a number with so many decimals; what rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text if float(text) else text.removeprefix("-")


# --- what a person may have meant ---


MAX_NAMES = 10_000  # names of a folder that are compared


def meant(name: str, names: Iterable[str]) -> str:
    """Return a question about the one of *names* that is most like *name*; empty if none is."""
    folded = {each.casefold(): each for each in names}
    close = get_close_matches(name.casefold(), folded, 1)
    return f"; did you mean {folded[close[0]]}?" if close else ""


def meant_file(path: str | os.PathLike[str]) -> str:
    """Return a question about the file or folder that is most like *path*, which is missing."""
    path = Path(path)
    with suppress(OSError, ValueError):
        first = next((each for each in (*reversed(path.parents), path) if not each.exists()), path)
        names = {each.name.casefold(): each.name for each in islice(first.parent.iterdir(), MAX_NAMES)}
        if close := get_close_matches(first.name.casefold(), names, 1):
            found = first.parent / names[close[0]]
            whole = found / path.relative_to(first)
            return f"; did you mean {whole if whole.exists() else found}?"
    return ""


def hinted(kind: type[T]) -> type[T]:
    """Wrap the asynchronous methods of a class: wrong arguments are a `TypeError` with the right keyword."""
    for name, method in [*vars(kind).items()]:
        if not name.startswith("_"):
            if iscoroutinefunction(method):
                setattr(kind, name, hinted_coroutine(method))
            elif isasyncgenfunction(method):
                setattr(kind, name, hinted_generator(method))
    return kind


def hinted_coroutine(method: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Return a coroutine function like *method*."""

    @wraps(method)
    async def wrapped(self: object, /, *args: Any, **kwargs: Any) -> T:
        return await bound(self, method, self, *args, **kwargs)

    return wrapped


def hinted_generator(method: Callable[Concatenate[Owner, P], T]) -> Callable[Concatenate[Owner, P], T]:
    """Return a function that returns the generator of *method*."""

    @wraps(method)
    def wrapped(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return bound(self, method, self, *args, **kwargs)

    return wrapped


def bound(owner: object, method: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call *method*, whose body does not run yet; wrong arguments are a `TypeError` in words of *owner*."""
    try:
        return method(*args, **kwargs)
    except TypeError as exc:
        raise in_words_of(owner, method, exc, kwargs) from None


def in_words_of(
    owner: object, method: Callable[..., Any], fault: TypeError, given: Mapping[str, Any]
) -> TypeError:
    """
    Return the error of a call with wrong arguments: it names the class of *owner* and the right keyword.

    Args:
        given: keywords of the call, with their values.
    """
    text = re.sub(r"^\w+\.", f"{type(owner).__name__}.", str(fault))
    arguments = dict(islice(signature(method, eval_str=True).parameters.items(), 1, None))
    unknown = {name: value for name, value in given.items() if name not in arguments}
    first = next(iter(unknown), "")
    if first == "metrics" and "metric" in arguments:
        return TypeError(f"{text}: metric= is one name; score_items and score_many take several")
    for name, argument in arguments.items():
        for kind in (argument.annotation, *get_args(argument.annotation)):
            if first in (there := getattr(kind, "__dataclass_fields__", ())):
                of_kind = ", ".join(f"{each}={value!r}" for each, value in unknown.items() if each in there)
                return TypeError(f"{text}: {method.__name__} takes {name}={kind.__name__}({of_kind})")
    return TypeError(f"{text}{meant(first, arguments)}")


def hinted_keywords(kind: type[T]) -> type[T]:
    """Wrap the constructor of a class: a keyword that it does not have is a `TypeError` with the nearest."""
    init = "__init__"
    constructor: Callable[..., None] = getattr(kind, init)
    names = [*signature(constructor).parameters][1:]

    @wraps(constructor)
    def wrapped(self: object, /, *args: Any, **kwargs: Any) -> None:
        if unknown := next((name for name in kwargs if name not in names), ""):
            raise TypeError(
                f"{kind.__name__}() got an unexpected keyword argument {unknown!r}{meant(unknown, names)}"
            )
        constructor(self, *args, **kwargs)

    setattr(kind, init, wrapped)
    return kind


# --- progress on stderr, and lines above it ---


WIDTH = 80
LEFT_OUT = "files that are no pictures, left out"
TERMINAL_S, LOG_S = 0.2, 30.0  # seconds between two updates; a log keeps each line


def columns_of(file: TextIO) -> int | None:
    """Return 80 for a terminal without a width, as in some containers, else None: tqdm finds the width."""
    try:
        return None if os.get_terminal_size(file.fileno()).columns else WIDTH
    except (OSError, ValueError):  # no terminal, or a file without a descriptor
        return None


class Progress(tqdm):  # type: ignore[misc,type-arg,unused-ignore]
    """
    A bar on a terminal, and a line every 30 seconds in a log.

    Args:
        total: the number of items, if known.
        leave: keep the last state.  Otherwise a run of less than 30 seconds prints no line in a log.
    """

    monitor_interval = 0  # no thread of tqdm's, since the process may fork

    def __init__(self, total: int | None, *, leave: bool = True, file: TextIO | None = None) -> None:
        file = file or sys.stderr
        every_s = TERMINAL_S if file.isatty() else LOG_S
        delay_s = 0.0 if leave or file.isatty() else every_s
        self.failed = 0
        super().__init__(
            total=total,
            leave=leave,
            file=file,
            ncols=columns_of(file),
            mininterval=every_s,
            miniters=1,
            delay=delay_s,
            smoothing=0,
            disable=VERBOSITY.quiet,
        )

    def step(self, *, failed: bool = False, resumed: bool = False) -> None:
        """Count an item; *resumed* items are from an earlier run and do not count for the rate."""
        if self.disable:  # then it counts nothing
            return
        self.initial += resumed
        if failed:
            self.failed += 1
            self.set_postfix_str(f"{self.failed} with errors", refresh=False)
        self.update()

    @staticmethod
    def status_printer(file: TextIO) -> Callable[[str], Any]:
        """Return the function that prints a state: over the last one on a terminal, else as a line."""
        if file.isatty():
            printer: Callable[[str], Any] = tqdm.status_printer(file)
            return printer
        return lambda line: print(line, file=file, flush=True) if line else None


@dataclass
class Verbosity:
    """Whether the command prints errors alone to stderr."""

    quiet: bool = False


VERBOSITY = Verbosity()  # one for the process, whose threads print, too


class ErrorLine(str):
    """A line about an error, which `say` prints also if the command is quiet."""


def say(*texts: str) -> None:
    """Print each text in a line to stderr; of a quiet command each `ErrorLine`."""
    complain(*(each for each in texts if not VERBOSITY.quiet or isinstance(each, ErrorLine)))


def complain(*texts: str) -> None:
    """Print each error in a line to stderr, above the bar if there is one."""
    write = Progress.write if sys.stderr.isatty() else print
    for text in texts:
        write(shown(text), file=sys.stderr)


def say_outage(line: str) -> None:
    """Print that the service is away, which a run outlasts."""
    say(f"scoregate: {line}")


def say_unused(what: str, names: Sequence[str]) -> None:
    """Print the number of files that are not used, and the first five, to stderr; nothing without any."""
    if names:
        say(f"{what}: {len(names)} ({', '.join(names[:5])}{', …' * (len(names) > 5)})")
