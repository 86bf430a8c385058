"""Readers of text files: short ones whole, others line by line, gzipped or not."""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

MAX_LINE = 2**20  # bytes
BOM = b"\xef\xbb\xbf"


def text_of(path: Path, most: int) -> tuple[str, bytes]:
    """
    Return the text of a file of at most so many bytes, without a BOM, and its bytes.

    Raises:
        OSError: it cannot be read.
        ValueError: it is longer, or not UTF-8.
    """
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{path} has more than {most} bytes")
    try:
        return content.decode("utf-8-sig"), content
    except UnicodeDecodeError as exc:
        raise ValueError(f"{path} is not UTF-8") from exc


@contextmanager
def opened(path: Path) -> Iterator[BufferedIOBase]:
    """
    Open a file for reading; one that ends in `.gz` is decompressed.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a complete gzip file.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise ValueError(f"{path} is no whole gzip file: {exc}") from exc


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """
    Iterate over the lines of a file that are not blank, with their numbers from 1.

    A line longer than `MAX_LINE` is cut off after `MAX_LINE` + 1 bytes.

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
    Iterate over the rows of a CSV file with a header, with the numbers of their last lines.

    Empty fields stay empty strings.  Bytes that are not UTF-8 become lone surrogates.

    Args:
        columns: required columns.
        fill: the value of fields that a short row lacks; by default such rows are refused.

    Raises:
        OSError, ValueError: as `opened`; a column is missing; a row is too short or is not CSV.
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
    """Iterate over the lines of *file*.  Raises `ValueError` if one is too long."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise ValueError(f"{path} has a line of more than {MAX_LINE} bytes")
        yield line
