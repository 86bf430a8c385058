"""Rows of JSON Lines, CSV and Parquet files, each with its number; files that a run appends lines to."""

from __future__ import annotations

import csv
import errno
import gzip
import io
import json
import os
import re
import struct
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from math import inf, isinf, nan
from pathlib import Path
from typing import IO, Any, AnyStr, BinaryIO, Generic, NoReturn, TypeVar, cast

from scoregate import columnar
from scoregate.columnar import LIMITS, MemoryLimits, has_more, rows_in
from scoregate.errors import InputError
from scoregate.text import meant_file

MAX_LINE = 64 * 2**20  # bytes or characters; the default limit of a request

LABELS = {"1": True, "1.0": True, "true": True, "0": False, "0.0": False, "false": False}

GZIP, PACKED = ".gz", b"\x1f\x8b"  # a name, and the first bytes whatever the name
LFS = b"version https://git-lfs.github.com/spec/"
POINTER = "is a pointer of Git LFS in place of the file: run `git lfs pull`"
QUOTED = re.compile(r'"[^"]*"?')
TABLES_OF_TEXT = (".csv", ".tsv")  # all their cells are texts
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
SEPARATORS = ",;\t"  # CSV has the first of them if none stands in the first line
BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)  # a file that is not packed as its name says, or is cut


PLAIN = ("row", "image", "prompt", "sha256")  # fields of a line of results, the same in all formats
NO_ROW = 0  # `row` of a line that is of no row of the data set any more


@dataclass(frozen=True)
class Record:
    """
    A row; *number* counts from 1, in JSON Lines the lines.  With a *fault* it has no values.

    Attributes:
        name: of a sample in a tar: the file's and its key.
    """

    number: int
    values: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    name: str | None = None

    def is_left_over(self) -> bool:
        """Return True for a line of results that is of no row of the data set any more."""
        return str(self.values.get("row")) == str(NO_ROW) and self.values.keys() >= {*PLAIN, "errors"}


def records(path: Path) -> Iterator[Record]:
    """
    Yield the rows of *path*, read lazily; decompressed if its name ends in `.gz`.

    Raises:
        InputError: the format is unknown, or not that of the name.
        OSError: the file can't be read.
    """
    reader = READERS.get(kind(path))
    if reader is None:
        path.stat()  # this is the error of a missing file, whatever its suffix is
        raise InputError(f"{path}: the name must end in {', '.join(READERS)}, or one of these and .gz")
    try:
        yield from reader(path)
    except BROKEN as exc:
        raise InputError(f"{path}: {exc}") from exc


def kind(path: Path) -> str:
    """Return the suffix of the file's format."""
    return Path(path.stem if path.suffix.lower() == GZIP else path.name).suffix.lower()


def stem(path: Path) -> str:
    """Return the name of a file without the suffixes of its format."""
    return Path(path.name.removesuffix(GZIP)).stem


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` for a device or a pipe, which may never end; a path without a file passes."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def opened(path: Path, *, text: bool = False) -> BinaryIO:
    """
    Return the bytes of a file, unpacked if they are gzip's.

    Raises:
        InputError: it is a pointer of Git LFS in place of the file; or a *text* in UTF-16.
        OSError: it cannot be read; also for a device or a pipe.
    """
    check_regular(path)
    with path.open("rb") as file:
        start = file.read(len(LFS))
    if start.startswith(LFS):  # the text that Git keeps in place of the file
        raise InputError(f"{path}: {POINTER}")
    packed = path.suffix.lower() == GZIP or start.startswith(PACKED)
    content = gzip.open(path) if packed else path.open("rb")  # noqa: SIM115, the caller closes it
    if text and content.peek(2)[:2] in UTF_16:
        content.close()
        raise InputError(f"{path}: is UTF-16: save it as UTF-8")
    return cast(BinaryIO, content)


def lines_of(path: Path, file: IO[AnyStr], most: int) -> Iterator[AnyStr]:
    """Yield the lines of *file*.  Raises `InputError` for one of more than *most*, as a bomb in gzip has."""
    while line := file.readline(most + 1):
        if len(line) > most:
            raise InputError(f"{path}: a line has more than {most} characters")
        yield line


def json_lines(path: Path, most: int = MAX_LINE) -> Iterator[Record]:
    """Yield a row for each line, a JSON object; empty lines are left out."""
    with opened(path, text=True) as file:
        for number, line in enumerate(lines_of(path, file, most), 1):
            if line.strip():
                yield json_record(number, line)


def json_record(number: int, line: bytes) -> Record:
    try:
        values = json.loads(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
    except (ValueError, RecursionError) as exc:  # ValueError: not UTF-8 as well
        return Record(number, fault=f"not JSON ({exc})")
    if not isinstance(values, dict):
        return Record(number, fault="not a JSON object")
    return Record(number, values)


def separated(path: Path, most: int = MAX_LINE) -> Iterator[Record]:
    """Yield a row for each line after that of the columns' names; CSV has commas, semicolons or tabs."""
    csv.field_size_limit(most)
    with io.TextIOWrapper(opened(path, text=True), "utf-8-sig", errors="surrogateescape", newline="") as file:
        lines = lines_of(path, file, most)
        first = next(lines, "")
        names = QUOTED.sub("", first)
        separator = "\t" if kind(path) == ".tsv" else max(SEPARATORS, key=names.count)
        reader = csv.DictReader(chain([first], lines), delimiter=separator)
        try:
            heads = reader.fieldnames or ()
        except csv.Error as exc:
            raise InputError(f"{path}: {exc}") from exc
        if not heads or len(set(heads)) < len(heads):
            raise InputError(f"{path}: the first line must name the columns, each once")
        number = 0
        while True:
            number += 1
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as exc:
                yield Record(number, fault=str(exc))
            else:
                if None in values:
                    yield Record(number, fault="has more cells than the first line names")
                    continue
                yield Record(number, {name: value for name, value in values.items() if value is not None})


def parquet(path: Path) -> Iterator[Record]:
    """Yield a row for each row of Parquet, which needs the extra `parquet`."""
    return of_batches(parquet_batches(path))


def of_batches(batches: Iterable[Any], most: int = MAX_LINE) -> Iterator[Record]:
    """Yield the rows of record batches; one with a cell of more than *most* bytes has a fault."""
    rows = (values for batch in batches for values in rows_in(batch))
    for number, values in enumerate(rows, 1):
        larger = [name for name, cell in values.items() if has_more(cell, most)]
        fault = f"column {larger[0]} has more than {most} bytes" if larger else ""
        yield Record(number, {} if fault else values, fault)


def parquet_batches(path: Path, limits: MemoryLimits = LIMITS) -> Iterator[Any]:
    """Yield the record batches of a Parquet file, as `columnar`.  Raises `InputError`."""
    pyarrow, reader = arrow()
    try:
        with opened(path) as file:
            yield from columnar.parquet_batches(file, reader, limits)
    except (pyarrow.ArrowException, columnar.RowsTooLargeError) as exc:
        raise InputError(f"{path}: {exc}") from exc


def arrow_batches(path: Path, limits: MemoryLimits = LIMITS) -> Iterator[Any]:
    """Yield the record batches of an Arrow stream or file, as `columnar`.  Raises `InputError`."""
    pyarrow, _ = arrow()
    try:
        with opened(path) as file, opened(path) as again:
            yield from columnar.arrow_batches(file, again, pyarrow, limits)
    except (pyarrow.ArrowException, columnar.RowsTooLargeError, struct.error) as exc:
        raise InputError(str(exc)) from exc


def number(cell: Any) -> float:
    """
    Return the number in a cell: a number, or its decimal in ASCII; infinite if it is too large for a float.

    Python's `float` also reads `1_0` as 10, and digits of other scripts.

    Raises:
        ValueError: the cell is something else.
    """
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        try:
            return float(cell)
        except OverflowError:
            return inf
    if isinstance(cell, str) and cell.isascii() and "_" not in cell:
        with suppress(ValueError):
            return float(cell)
    raise ValueError(f"{cell!r} is not a number")


def cell_number(cell: Any) -> float:
    """
    Return the finite number in a cell, also in quotes; NaN for an empty cell.

    Raises:
        ValueError: as `number`, or it is infinite.
    """
    if isinstance(cell, str):
        cell = cell.replace('"', "")
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return nan
    value = number(cell)
    if isinf(value):
        raise ValueError(f"{cell!r} is not finite")
    return value


def truth(cell: Any) -> bool:
    """Return True for 1 and true, False for 0 and false.  Raises `ValueError` for any other cell."""
    found = LABELS.get(str(cell).strip().lower())
    if found is None:
        raise ValueError(f"{cell!r} is not a label, which is 0, 1, true or false")
    return found


def json_cell(cell: Any) -> Any:
    """Return the object or list in JSON that a text in a cell is; any other cell unchanged."""
    if isinstance(cell, str) and cell.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # a text that begins like one
            return strict_json(cell)
    return cell


def json_or_text(value: str) -> Any:
    """Parse *value* as JSON; return the text itself if it is not JSON."""
    try:
        return strict_json(value)
    except (ValueError, RecursionError):
        return value


def toml_of(path: Path) -> dict[str, Any]:
    """Return the table in a TOML file.  Raises `InputError`, `OSError`."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    check_regular(path)
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InputError(f"{path}: not TOML ({exc})") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deep") from None


def json_of(path: Path) -> Any:
    """Return the content of a JSON file, also of a `.json.gz`.  Raises `InputError`."""
    try:
        with opened(path) as file:
            return json.load(file)
    except (ValueError, RecursionError, EOFError) as exc:
        raise InputError(f"{path}: not JSON ({exc})") from exc


def strict_json(text: str) -> Any:
    """Parse JSON without NaN and infinities.  Raises `ValueError`."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no number of JSON")

    return json.loads(text, parse_constant=refuse)


def json_object_in(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None for anything else.  Raises `OSError`."""
    check_regular(path)
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def count(path: Path) -> int:
    """Return the number of rows of `records`, without decoding Parquet."""
    if kind(path) != ".parquet":
        return sum(1 for _ in records(path))
    pyarrow, reader = arrow()
    try:
        with opened(path) as bytes_of:
            return int(reader.read_metadata(bytes_of).num_rows)
    except (pyarrow.ArrowException, *BROKEN) as exc:
        raise InputError(f"{path}: {exc}") from exc


def arrow() -> tuple[Any, Any]:
    """Return the modules `pyarrow` and `pyarrow.parquet`.  Raises `InputError` if they are missing."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as exc:
        raise InputError(
            "Parquet needs pyarrow: pip install './client[parquet]' in a checkout of Scoregate"
        ) from exc
    return pyarrow, pyarrow.parquet


# The reader of each suffix; its docstring is about the format.
READERS: Mapping[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".csv": separated,
    ".tsv": separated,
    ".parquet": parquet,
}


PAGE = b"<!doctype html"  # the first bytes of each page


def stands_there(path: Path, what: str) -> bool:
    """Return True if *path* is a file already.  Raises `InputError` if it can be none, for the *what*."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}{meant_file(path.parent)}")
    if path.is_dir():
        raise InputError(f"{path}: is a folder: name a file for the {what}")
    return path.is_file()


def check_page(path: Path) -> None:
    """Raise `InputError` if a page cannot be written to *path*, or would take the place of something else."""
    if not stands_there(path, "page"):
        return
    with path.open("rb") as opened:
        begin = opened.read(len(PAGE)).lower()
    if begin and begin != PAGE:
        raise InputError(f"{path}: exists, and is no page: name another file")


def check_json(path: Path) -> None:
    """Raise `InputError` if JSON cannot be written to *path*, or would take the place of something else."""
    if not stands_there(path, "JSON"):
        return
    try:
        json.loads(path.read_bytes() or b"null")
    except (ValueError, RecursionError):
        raise InputError(f"{path}: exists, and is not one JSON value: name another file") from None


# --- a file of JSON Lines, which a run appends to, and the next run reads ---


Line = dict[str, Any]
K = TypeVar("K", bound=Hashable)


class Store(ABC, Generic[K]):
    """
    Lines by key, at their offsets in an open file; a later line takes the place of an earlier one.

    After a kill, all lines but an incomplete last one are still there; that one is cut off.  A subclass says
    what a line is.

    Args:
        file: with the lines of earlier runs: its path, at which there need be none, or the open file; closed
            after an error.
        name: of the file, for people; by default its path.

    Attributes:
        FIRST: the names of the first two fields of a line; the first one's value is a number or a text.
        starts: the offsets of the lines that count, by key.
        count: all lines.
        end: the offset behind them.

    Raises:
        OSError: the file cannot be read or written; also for a device or a pipe.
        ValueError: a line is not valid; of the type that the subclass raises.
    """

    FIRST: tuple[str, str]

    def __init__(self, file: BinaryIO | str | os.PathLike[str], name: str = "") -> None:
        if isinstance(file, str | os.PathLike):
            check_regular(file)
            name = os.fspath(file)
            file = open(file, "r+b" if os.path.exists(file) else "w+b")  # noqa: SIM115, `close` closes it
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

    def copy(self, starts: Iterable[int], path: Path) -> None:
        """Write the lines at *starts* to another file."""
        with path.open("wb") as file:
            file.writelines(dumped(self.at(start)) for start in starts)

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
        first, second: the names of the first fields of such a line; the first one's value is a number or a
            text.
    """
    value = re.match(rb'\{"%b": (\d+|"(?:[^"\\]|\\.?)*"?)' % first.encode(), line)
    head = b'{"%b": %b, "%b": ' % (first.encode(), value[1] if value else b"", second.encode())
    if line.endswith(b"\n") or not (head.startswith(line) or line.startswith(head)):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return False
