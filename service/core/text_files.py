"""Text files from outside: read a line at a time, gzipped or not."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

MAX_LINE = 2**20  # bytes
BOM = b"\xef\xbb\xbf"


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """
    A file to read from; one that ends in `.gz` is decompressed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no whole gzip file.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise ValueError(f"{path} is no whole gzip file: {exc}") from exc


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """
    The lines of a file that are not blank, with their numbers from 1.

    Of a line that is longer than `MAX_LINE` only the begin is read; it is longer than that in any case.

    Raises:
        OSError, ValueError: as `opened`.
    """
    with opened(path) as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            rest = line
            while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
                rest = file.readline(MAX_LINE + 1)
            if number == 1:
                line = line.removeprefix(BOM)
            if line.strip():
                yield number, line


def table(
    path: Path, columns: Sequence[str], fill: str | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """
    The rows of a CSV file with a header, with the numbers of their last lines.

    Empty fields stay empty strings.  Bytes that are not UTF-8 become lone surrogates.

    Args:
        columns: that there must be.
        fill: the value of fields that a short row lacks; such rows are refused by default.

    Raises:
        OSError, ValueError: as `opened`; a column is missing; a row is too short, or no CSV.
    """
    with opened(path) as file:
        text = (line.removeprefix(BOM).decode(errors="surrogateescape") for line in bounded(file, path))
        rows = csv.DictReader(text, restval=fill)
        try:
            missing = [column for column in columns if column not in (rows.fieldnames or ())]
            if missing:
                raise ValueError(f"{path} has no column {missing[0]}")
            for row in rows:
                if any(row[column] is None for column in columns):
                    raise ValueError(f"{path}: line {rows.line_num} has too few fields")
                yield rows.line_num, row
        except csv.Error as exc:
            raise ValueError(f"{path}: line {rows.line_num}: {exc}") from exc


def bounded(file: BufferedIOBase, path: Path) -> Iterator[bytes]:
    """The lines of *file*.  Raises `ValueError` at one that is too long."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise ValueError(f"{path} has a line of more than {MAX_LINE} bytes")
        yield line
