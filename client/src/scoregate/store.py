"""Results in a file of JSON Lines, which a run appends to, and the next run reads."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

from scoregate.records import check_regular

Line = dict[str, Any]
K = TypeVar("K", bound=Hashable)


class Store(ABC, Generic[K]):
    """
    Lines by key, at their offsets in an open file; a later line takes the place of an earlier one.

    After a kill, all lines but an incomplete last one are still there; that one is cut off.  A subclass says
    what a line is.

    Args:
        file: for reading and writing, with the lines of earlier runs; closed after an error.
        name: of the file, for people.

    Attributes:
        FIRST: the names of the first two fields of a line; the first one's value is a number.
        starts: the offsets of the lines that count, by key.
        count: all lines.
        end: the offset behind them.

    Raises:
        ValueError: a line is not valid; of the type that the subclass raises.
    """

    FIRST: tuple[str, str]

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name = file, name
        self.starts: dict[K, int] = {}
        self.end = self.count = 0
        try:
            self._index()
        except BaseException:
            file.close()
            raise

    @abstractmethod
    def parsed(self, data: bytes, place: str) -> Line:
        """Return a line of an earlier run.  Raises `ValueError`, which begins with *place*, for another."""

    @abstractmethod
    def key(self, line: Line) -> K | None:
        """Return the key of a line; None if it does not count."""

    def get(self, key: K) -> Line | None:
        """Return the line of a key, if any."""
        start = self.starts.get(key)
        return None if start is None else self.at(start)

    def at(self, start: int) -> Line:
        """Return the line at an offset."""
        self._file.seek(start)
        line: Line = json.loads(self._file.readline())
        return line

    def append(self, line: Line, key: K) -> int:
        """Write the line of a key behind the others, and return its offset."""
        data, start = dumped(line), self.end
        self._file.seek(start)
        self._file.write(data)
        self._note(key, len(data))
        return start

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _index(self) -> None:
        self._file.seek(0)
        for number, data in enumerate(self._file, 1):
            if is_torn(data, *self.FIRST):
                break
            line = self.parsed(data, f"{self.name}, line {number}")
            if not data.endswith(b"\n"):
                break
            self._note(self.key(line), len(data))
        self._file.truncate(self.end)

    def _note(self, key: K | None, length: int) -> None:
        if key is not None:
            self.starts[key] = self.end
        self.end += length
        self.count += 1


def opened(path: str | PathLike[str]) -> BinaryIO:
    """Open a file of a store, which need not exist.  Raises `OSError` for a device or a pipe."""
    check_regular(path)
    return open(path, "r+b" if Path(path).exists() else "w+b")


def dumped(line: Line) -> bytes:
    """Return *line* as bytes of JSON; non-ASCII text stays readable, lone surrogates are escaped."""
    try:
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(line).encode() + b"\n"


def is_torn(line: bytes, first: str, second: str) -> bool:
    """
    Return True for the beginning of a line of JSON that was not written to its end.

    Args:
        first, second: the names of the first fields of such a line; the first one's value is a number.
    """
    digits = re.match(rb'\{"%b": (\d+)' % first.encode(), line)
    head = b'{"%b": %b, "%b": ' % (first.encode(), digits[1] if digits else b"", second.encode())
    if line.endswith(b"\n") or not (head.startswith(line) or line.startswith(head)):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False
