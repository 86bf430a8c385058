"""Several rows from one: each picture with each text of an item, and each value of an option."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from scoregate.data.rows import Row, empty
from scoregate.errors import InputError, named
from scoregate.records import Record, check_regular, json_or_text

ID = "id"  # the data set's own name of an item
ITEM, IMAGE_NUMBER, CAPTION = (
    "item",
    "picture",
    "caption",
)  # columns that a matrix adds; the last two count from 0


def listed(values: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    """Return the cells of *columns* as one list; a cell may be a list itself.  Raises `ValueError`."""
    cells = [values.get(column) for column in columns]
    if missing := [column for column, cell in zip(columns, cells, strict=True) if empty(cell)]:
        raise ValueError(f"column {missing[0]} is missing")
    return [each for cell in cells for each in (cell if isinstance(cell, list) else [cell])]


@dataclass(frozen=True)
class Sweep:
    """An option with its values, each with the text that stands for it in a column."""

    metric: str
    option: str
    values: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of its column: `METRIC.OPTION`."""
        return f"{self.metric}.{self.option}"


def sweep_of(text: str) -> Sweep:
    """
    Return the sweep of an argument `METRIC.OPTION=FILE`; each line of the file is a value.

    Raises:
        InputError: the argument has another form, or the file has no values or one twice.
        OSError: the file cannot be read.
    """
    name, equals, file = text.partition("=")
    metric, _, option = name.rpartition(".")
    if not (metric and option and equals and file):
        raise InputError(f"{named('sweep', text)}: it has the form METRIC.OPTION=FILE")
    check_regular(file)
    try:
        lines = [line for line in Path(file).read_text("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"{file}: is not UTF-8") from None
    if not lines or len(set(lines)) < len(lines):
        raise InputError(f"{file}: {'a value stands there twice' if lines else 'there is no value'}")
    return Sweep(metric, option, {line: json_or_text(line) for line in lines})


def swept(rows: Iterable[Row], sweeps: Sequence[Sweep]) -> Iterator[Row]:
    """Yield each row once for every combination of values; a column of each option has its text."""
    for row in rows:
        for texts in product(*(sweep.values for sweep in sweeps)):
            options = {metric: dict(own) for metric, own in row.options.items()}
            for sweep, text in zip(sweeps, texts, strict=True):
                options.setdefault(sweep.metric, {})[sweep.option] = sweep.values[text]
            added = {sweep.name: text for sweep, text in zip(sweeps, texts, strict=True)}
            yield replace(row, options=options, columns={**row.columns, **added})


def taken(names: Collection[str]) -> str:
    """Return the fault of columns with names that a matrix adds; empty for others."""
    same = {IMAGE_NUMBER, CAPTION, "image", "prompt"}.intersection(names)
    return f"adds a column {min(same)}: rename the one of the data set" if same else ""


def matrix(record: Record, images: Sequence[str], prompts: Sequence[str]) -> Iterator[Record]:
    """
    Yield a record for each picture with each text of *record*, in columns `image` and `prompt`.

    The column `item` is the data set's own one, else its `id`, else the row's number.  A row with another
    column of the name of an added one has a fault.

    Args:
        images: the columns of its pictures; a cell may be a list.
        prompts: the columns of its texts, likewise.
    """
    if record.fault:
        yield record
        return
    values = record.values
    try:
        cells, texts = listed(values, images), listed(values, prompts)
    except ValueError as exc:
        yield Record(record.number, fault=str(exc))
        return
    rest = {name: cell for name, cell in values.items() if name not in (*images, *prompts)}
    if fault := taken(rest):
        yield Record(record.number, fault=f"--matrix {fault}")
        return
    if empty(rest.get(ITEM)):
        rest[ITEM] = record.number if empty(rest.get(ID)) else rest[ID]
    for (number, image), (caption, text) in product(enumerate(cells), enumerate(texts)):
        yield Record(
            record.number,
            {**rest, IMAGE_NUMBER: number, CAPTION: caption, "image": image, "prompt": text},
        )
