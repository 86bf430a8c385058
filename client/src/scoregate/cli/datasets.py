"""Data sets of `scoregate batch`: a folder with captions, an `imagefolder`, JSON Lines, CSV or Parquet."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from errno import ENOENT
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from scoregate.cli.exits import UsageFault
from scoregate.cli.records import Record, count, records

PICTURES = frozenset({".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
METADATA = ("metadata.jsonl", "metadata.csv", "metadata.parquet")  # Hugging Face's `imagefolder`
RELATED = ("references", "source")  # columns of pictures for metrics that use them
FIRST = 100  # rows in which a column has to be seen
MAX_PROMPT = 4000  # characters; the service refuses the whole request for a longer one
OUTSIDE = "lies outside the data set's folder, and --any-path is not given"
UNUSABLE = re.compile("\0|[\ud800-\udfff]")


@dataclass(frozen=True)
class Row:
    """
    One picture and its prompt.  With a *fault*, which names the row and the column, it can't be scored.

    Attributes:
        number: counts from 1; in JSON Lines the line.
        image: the picture's name, for people and for finding the row again.
        columns: further columns that hold a text, a number or a truth value.
        related: the non-empty cells of the columns `references` and `source`.
        folder: the base of relative paths in these cells, and the only folder that files are read from.
        any_path: also read files elsewhere.
    """

    number: int
    image: str | None = None
    prompt: str | None = None
    picture: Path | bytes = b""
    columns: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    related: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    any_path: bool = False

    def read(self) -> bytes:
        """
        Return the picture's bytes.

        Raises:
            OSError: there is no such file.
            ValueError: it is outside the folder.
        """
        return self.bytes_of(self.picture)

    def read_related(self, column: str) -> list[bytes]:
        """
        Return the bytes of the pictures in `references` or `source`, if the row has any.

        Raises:
            ValueError: one of them is missing or no picture; the error names the column.
        """
        cell = self.related.get(column, [])
        try:
            cells = cell if isinstance(cell, list) else [cell]
            return [self.bytes_of(picture_of(each, self.folder)[1]) for each in cells]
        except OSError as exc:
            raise ValueError(f"column {column}: {exc.filename or cell}: {exc.strerror or exc}") from exc
        except ValueError as exc:
            raise ValueError(f"column {column} {exc}") from exc

    def bytes_of(self, picture: Path | bytes) -> bytes:
        """Return the bytes of a picture.  Raises as `read`."""
        if isinstance(picture, bytes):
            return picture
        if not picture.is_file():  # a device or a pipe may never end
            raise FileNotFoundError(ENOENT, "no such file", picture)
        if not (self.any_path or is_below(picture, self.folder)):
            raise ValueError(OUTSIDE)
        return picture.read_bytes()


def is_below(file: Path, folder: Path) -> bool:
    """Return True if a file is below *folder*; links are followed."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


@dataclass(frozen=True)
class Dataset:
    """
    The rows of a folder or a file, read again for each iteration.

    Raises:
        UsageFault: nothing can be read from *path*, or none of its first rows has the columns.
    """

    path: Path
    image_column: str | None = None  # `file_name` in metadata, else `image`
    prompt_column: str = "prompt"
    any_path: bool = False  # whether pictures outside its folder are read

    def __iter__(self) -> Iterator[Row]:
        if self.table is None:
            return captioned(self.path, self.any_path)
        return self.listed(self.table)

    @property
    def table(self) -> Path | None:
        """The file that lists the pictures; None if each has a caption file."""
        if not self.path.exists():
            raise UsageFault(f"{self.path}: no such file or folder")
        if not self.path.is_dir():
            return self.path
        return next((file for name in METADATA if (file := self.path / name).is_file()), None)

    @property
    def image(self) -> str:
        """The column of pictures."""
        return self.image_column or ("file_name" if self.path.is_dir() else "image")

    def __len__(self) -> int:
        return count(self.table) if self.table else sum(1 for _ in pictures(self.path))

    def listed(self, table: Path) -> Iterator[Row]:
        self.check_columns(table)
        for record in records(table):
            row = listed_row(record, table.parent, self.image, self.prompt_column)
            yield replace(row, any_path=self.any_path)

    def check_columns(self, table: Path) -> None:
        """Raise `UsageFault` if a column is missing: one line instead of an error for each row."""
        seen = [record.values.keys() for record in islice(records(table), FIRST)]
        names = list(dict.fromkeys(name for keys in seen for name in keys))
        for column, option in ((self.image, "--image-column"), (self.prompt_column, "--prompt-column")):
            if names and column not in names:
                raise UsageFault(
                    f"{table}: no column {column!r}; there are {', '.join(names)} (see {option})"
                )
        if not names:
            raise UsageFault(
                f"{table}: no rows" if not seen else f"{table}: none of the first rows can be read"
            )


def captioned(folder: Path, any_path: bool) -> Iterator[Row]:
    """Yield the pictures below *folder*; the prompt is the text file of the same name."""
    files = sorted(pictures(folder))
    if not files:
        raise UsageFault(f"{folder}: no pictures, and no {' or '.join(METADATA)}")
    for number, file in enumerate(files, 1):
        name = file.relative_to(folder).as_posix()
        try:
            prompt = caption_of(file, folder, any_path)
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else exc
            yield Row(number, name, fault=f"row {number}, {name}: its caption {file.stem}.txt: {why}")
        else:
            fault = prompt_fault(prompt)
            yield Row(
                number,
                name,
                prompt,
                file,
                fault=fault and f"row {number}, {name}: its caption {fault}",
                folder=folder,
                any_path=any_path,
            )


def caption_of(picture: Path, folder: Path, any_path: bool) -> str:
    """Return a picture's caption file.  Raises `OSError`, and `ValueError` if it is outside the data set."""
    caption = picture.with_suffix(".txt")
    if not (any_path or is_below(caption, folder)):
        raise ValueError(OUTSIDE)
    try:
        return caption.read_text("utf-8-sig").strip()
    except UnicodeDecodeError as exc:
        raise ValueError("is not UTF-8") from exc


def pictures(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.suffix.lower() in PICTURES)


def captions_alone(folder: Path) -> list[str]:
    """Return the text files without a picture of the same name."""
    shown = {file.with_suffix("") for file in pictures(folder)}
    texts = sorted(file for file in folder.rglob("*.txt") if file.with_suffix("") not in shown)
    return [file.relative_to(folder).as_posix() for file in texts]


def listed_row(record: Record, folder: Path, image: str, prompt: str) -> Row:
    """Return a record as a row; pictures are named relative to *folder*."""
    number, values = record.number, record.values
    if record.fault:
        return Row(number, fault=f"row {number}: {record.fault}")
    columns = {
        name: value
        for name, value in values.items()
        if name not in (image, prompt) and isinstance(value, str | int | float | bool | None)
    }
    text = values.get(prompt)
    faults = []
    try:
        name, picture = picture_of(values.get(image), folder)
    except ValueError as exc:
        name, picture = None, b""
        faults.append(f"column {image} {exc}")
    if why := prompt_fault(text):
        faults.append(f"column {prompt} {why}")
    fault = f"row {number}, {'; '.join(faults)}" if faults else ""
    prompted = text if isinstance(text, str) else None
    related = {column: values[column] for column in RELATED if values.get(column) not in (None, "", [])}
    return Row(number, name, prompted, picture, columns, fault, related, folder)


def picture_of(cell: Any, folder: Path) -> tuple[str, Path | bytes]:
    """Return a picture's name and, if given, its bytes.  Raises `ValueError`."""
    if isinstance(cell, Mapping) and cell.keys() & {"bytes", "path"}:  # Hugging Face's Image
        data, path = cell.get("bytes"), cell.get("path")
        if isinstance(data, bytes):
            return (path if isinstance(path, str) and path else digest(data)), data
        cell = path
    if isinstance(cell, bytes):
        return digest(cell), cell
    if cell is None or cell == "":
        raise ValueError("is missing")
    if not isinstance(cell, str) or UNUSABLE.search(cell):
        raise ValueError("is no path of a file")
    return cell, folder / cell


def digest(data: bytes, *related: bytes) -> str:
    """Return a hash that identifies a row's pictures."""
    name = sha256(data).hexdigest()
    if related:
        name = sha256("".join([name, *(sha256(each).hexdigest() for each in related)]).encode()).hexdigest()
    return f"sha256:{name}"


def prompt_fault(prompt: Any) -> str:
    """Return why the service would reject this prompt; empty if it would not."""
    if prompt is None:
        return "is missing"
    if not isinstance(prompt, str):
        return "is not a text"
    if not prompt.strip():
        return "is empty"
    if len(prompt) > MAX_PROMPT:
        return f"has {len(prompt)} characters, and {MAX_PROMPT} are allowed"
    return "has a character that is not text" if UNUSABLE.search(prompt) else ""
