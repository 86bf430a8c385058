"""
Cells of a table that are more than a text, and several rows from one.

A cell may be options of a row, or a list of pictures or prompts.  A row becomes several for each picture with
each text of an item, and for each value of an option.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from scoregate.data.rows import Row
from scoregate.records import BadInput, Record, check_regular, json_cell, json_or_text

QUESTION_SET = "question_set"
Scalar = str | int | float | bool | None

ID = "id"  # the data set's own name of an item


def in_json(
    values: Mapping[str, Any], texts: Collection[str] = (), objects: Collection[str] = ()
) -> dict[str, Any]:
    """
    Return the cells of a CSV row, with lists that results keep in place of their JSON.

    Args:
        texts: columns that stay texts.
        objects: columns with any JSON; those of options are parsed by `options_in`.
    """
    found = {name: cell if name in texts else json_cell(cell) for name, cell in values.items()}
    return {
        name: cell if name in objects or is_column(cell) else values[name] for name, cell in found.items()
    }


def is_column(cell: Any) -> bool:
    """Return True for a cell that results keep: a text, a number, a truth value, or a list of these."""
    return isinstance(cell, Scalar) or (isinstance(cell, list) and all(isinstance(c, Scalar) for c in cell))


def listed(values: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    """Return the cells of *columns* as one list; a cell may be a list itself.  Raises `ValueError`."""
    cells = [values.get(column) for column in columns]
    if missing := [column for column, cell in zip(columns, cells, strict=True) if empty(cell)]:
        raise ValueError(f"column {missing[0]} is missing")
    return [each for cell in cells for each in (cell if isinstance(cell, list) else [cell])]


def options_in(
    values: Mapping[str, Any],
    metrics: Sequence[str],
    asking: Sequence[str] = (),
    renamed: Mapping[str, str] | None = None,
    *,
    in_csv: bool = False,
    texts: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """
    Return the options that a row's cells give, by metric.

    The column `options` has an object by metric, a column `METRIC` the options of one, and a column
    `METRIC.OPTION` one option.  The column `question_set` is that option of each metric of *asking*.

    Args:
        metrics: all others are ignored.
        renamed: further columns, by `METRIC.OPTION`.
        in_csv: a cell of one option is JSON, or else a text.
        texts: options that are always texts, by `METRIC.OPTION`.

    Raises:
        ValueError: a cell is not an object of options, or not JSON.
    """
    found: dict[str, dict[str, Any]] = {}
    for metric, cell in in_options(json_cell(values.get("options"))).items():
        if metric in metrics:
            found[metric] = of_metric(cell, f"column options, {metric}")
    for metric in metrics:
        cell = json_cell(values.get(metric))
        if isinstance(cell, Mapping) or in_braces(cell):
            found[metric] = {**found.get(metric, {}), **of_metric(cell, f"column {metric}")}
    # An output of a rubric is a metric with a full stop in its name.
    dotted = {name: name for name in values if name.rpartition(".")[0] in metrics and name not in metrics}
    for name, column in {**dotted, **(renamed or {})}.items():
        metric, _, option = name.rpartition(".")
        if metric in metrics and not empty(cell := values.get(column)):
            of_it = option_of(cell, is_text=name in texts) if in_csv else cell
            found.setdefault(metric, {})[option] = of_it
    if not empty(cell := values.get(QUESTION_SET)):
        for metric in asking:
            found.setdefault(metric, {}).setdefault(QUESTION_SET, cell)
    check(found)
    return found


def names_in(cell: Any) -> list[str]:
    """Return the names in a cell: a list, or a text with commas."""
    names = cell if isinstance(cell, list) else str(cell or "").split(",")
    return list(dict.fromkeys(name for each in names if (name := str(each).strip())))


def option_of(cell: Any, *, is_text: bool) -> Any:
    """Return the value of an option in a cell of CSV: JSON, or else a text; always a text if it *is_text*."""
    value = json_or_text(cell) if isinstance(cell, str) else cell
    return cell if is_text and not isinstance(value, str) else value


def in_options(cell: Any) -> Mapping[str, Any]:
    """Return the content of the column `options`.  Raises `ValueError`."""
    if empty(cell):
        return {}
    if not isinstance(cell, Mapping):
        raise ValueError("column options is no object of options by metric")
    return cell


def of_metric(cell: Any, place: str) -> dict[str, Any]:
    """Return the options of one metric.  Raises `ValueError`, which begins with *place*."""
    if not isinstance(cell, Mapping):
        raise ValueError(f"{place} is no object of options")
    return {name: value for name, value in cell.items() if value is not None}


def check(options: Mapping[str, Any]) -> None:
    """Raise `ValueError` for options that a request cannot have."""
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"its options are no JSON ({exc})") from None


def in_braces(cell: Any) -> bool:
    """Return True for a text that begins as an object does."""
    return isinstance(cell, str) and cell.lstrip().startswith("{")


def empty(cell: Any) -> bool:
    """Return True for a cell without a value; an array has one."""
    return cell is None or (isinstance(cell, (str, list)) and not cell)


ITEM, PICTURE, CAPTION = "item", "picture", "caption"  # columns that a matrix adds; the last two count from 0


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
        BadInput: the argument has another form, or the file has no values or one twice.
        OSError: the file cannot be read.
    """
    name, equals, file = text.partition("=")
    metric, _, option = name.rpartition(".")
    if not (metric and option and equals and file):
        raise BadInput(f"--sweep {text}: it has the form METRIC.OPTION=FILE")
    check_regular(file)
    try:
        lines = [line for line in Path(file).read_text("utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise BadInput(f"{file}: is not UTF-8") from None
    if not lines or len(set(lines)) < len(lines):
        raise BadInput(f"{file}: {'a value stands there twice' if lines else 'there is no value'}")
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


def taken(names: Collection[str]) -> str:
    """Return the fault of columns with names that a matrix adds; empty for others."""
    same = {PICTURE, CAPTION, "image", "prompt"}.intersection(names)
    return f"--matrix adds a column {min(same)}: rename the one of the data set" if same else ""


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
        pictures, texts = listed(values, images), listed(values, prompts)
    except ValueError as exc:
        yield Record(record.number, fault=str(exc))
        return
    rest = {name: cell for name, cell in values.items() if name not in (*images, *prompts)}
    if fault := taken(rest):
        yield Record(record.number, fault=fault)
        return
    if empty(rest.get(ITEM)):
        rest[ITEM] = record.number if empty(rest.get(ID)) else rest[ID]
    for (picture, image), (caption, text) in product(enumerate(pictures), enumerate(texts)):
        yield Record(
            record.number, {**rest, PICTURE: picture, CAPTION: caption, "image": image, "prompt": text}
        )
