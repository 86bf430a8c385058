"""Several rows from one: each picture with each text of an item, and each value of an option."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import json_or_text
from scoregate.cli.cells import empty, listed
from scoregate.cli.exits import UsageFault
from scoregate.cli.rows import Row
from scoregate.images import check_regular
from scoregate.records import Record

ITEM, PICTURE, CAPTION = "item", "picture", "caption"  # columns that a matrix adds; the last two count from 0
ID = "id"  # the data set's own name of an item


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
        UsageFault: the argument has another form, or the file has no values or one twice.
        OSError: the file cannot be read.
    """
    name, equals, file = text.partition("=")
    metric, _, option = name.partition(".")
    if not (metric and option and equals and file):
        raise UsageFault(f"--sweep {text}: it has the form METRIC.OPTION=FILE")
    check_regular(file)
    try:
        lines = [line for line in Path(file).read_text("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise UsageFault(f"{file}: is not UTF-8") from None
    if not lines or len(set(lines)) < len(lines):
        raise UsageFault(f"{file}: {'a value stands there twice' if lines else 'there is no value'}")
    return Sweep(metric, option, {line: json_or_text(line) for line in lines})


def swept(rows: Iterable[Row], sweeps: Sequence[Sweep]) -> Iterator[Row]:
    """Yield each row once for every combination of values; a column of each option has its text."""
    for row in rows:
        for texts in product(*(sweep.values for sweep in sweeps)):
            options = {metric: dict(own) for metric, own in row.options.items()}
            for sweep, text in zip(sweeps, texts, strict=True):
                options.setdefault(sweep.metric, {})[sweep.option] = sweep.values[text]
            named = {sweep.name: text for sweep, text in zip(sweeps, texts, strict=True)}
            yield replace(row, options=options, columns={**row.columns, **named})


def matrix(record: Record, images: Sequence[str], prompts: Sequence[str]) -> Iterator[Record]:
    """
    Yield a record for each picture with each text of *record*, in columns `image` and `prompt`.

    The column `item` is the data set's own one, else its `id`, else the row's number.

    Args:
        images: the columns of its pictures; a cell may be a list.
        prompts: the columns of its texts, likewise.

    Raises:
        UsageFault: another column has the name of one that is added.
    """
    if record.fault:
        yield record
        return
    values = record.values
    try:
        pictures, texts = listed(values, images), listed(values, prompts)
    except ValueError as exc:
        yield Record(record.number, fault=str(exc))
        return
    rest = {name: cell for name, cell in values.items() if name not in (*images, *prompts)}
    if taken := rest.keys() & {PICTURE, CAPTION, "image", "prompt"}:
        raise UsageFault(f"--matrix adds a column {min(taken)}: rename the one of the data set")
    if empty(rest.get(ITEM)):
        rest[ITEM] = record.number if empty(rest.get(ID)) else rest[ID]
    for (picture, image), (caption, text) in product(enumerate(pictures), enumerate(texts)):
        yield Record(
            record.number, {**rest, PICTURE: picture, CAPTION: caption, "image": image, "prompt": text}
        )
