"""Tables from CSV, JSON Lines and Parquet files, also with `.gz`, read by column."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from scoregate.evaluation.arrays import Floats
from scoregate.records import BadInput, Record, number, records

LABELS = {"1": 1.0, "1.0": 1.0, "true": 1.0, "0": 0.0, "0.0": 0.0, "false": 0.0}
NESTED = ("scores", "columns")  # of a line that `scoregate batch` wrote

Cell = TypeVar("Cell")
Found = TypeVar("Found")


@dataclass
class Table:
    """
    The rows of a file.

    Attributes:
        dropped: rows that `complete` left out, for an empty cell.
        unquoted: numbers that stood in quotes inside their cell.
        turned: whether `worth` turned the sign of a column.
        kept: the rows that `complete` returned.
        incomplete: rows that were left out before, since another metric lacks a score there.
        joined: how the rows of other files were joined with these, a line for each.
    """

    path: Path
    records: list[Record]
    dropped: int = 0
    unquoted: int = 0
    turned: bool = False
    kept: Sequence[Record] = ()
    incomplete: Sequence[Record] = ()
    joined: tuple[str, ...] = ()

    def numbers(self, column: str) -> Floats:
        """Return the column as numbers, NaN if a cell is empty or NaN.  Raises `BadInput`."""
        return np.array(self.each(column, self.number), dtype=np.float64)

    def worth(self, column: str, *, lower: bool = False) -> Floats:
        """
        Return the column as numbers, negated if lower ones are better.

        Args:
            lower: whether they are.  A result of `scoregate batch` says it by itself.
        """
        numbers = self.numbers(column)
        self.turned = lower or any(column in listed(each.values) for each in self.records)
        return 0.0 - numbers if self.turned else numbers

    def labels(self, column: str) -> Floats:
        """Return the same for truth values: 1 and true, 0 and false."""
        return np.array(self.each(column, label), dtype=np.float64)

    def texts(self, column: str) -> list[str | None]:
        """Return the column as texts, None if a cell is empty."""
        return self.each(column, text)

    def names(self, column: str) -> list[str]:
        """Return the same.  Raises `BadInput` if a cell is empty."""
        return self.each(column, name)

    def complete(self, *columns: Floats | list[str | None]) -> list[Any]:
        """Return *columns* without the rows that lack a cell in one of them; those are counted."""
        whole = [
            place
            for place, cells in enumerate(zip(*columns, strict=True))
            if not any(cell is None or cell != cell for cell in cells)
        ]
        self.dropped = len(self.records) - len(whole)
        self.kept = [self.records[place] for place in whole]
        return [
            column[whole] if isinstance(column, np.ndarray) else [column[place] for place in whole]
            for column in columns
        ]

    def parsed(self, column: str, cells: Sequence[Cell], read: Callable[[Cell], Found]) -> list[Found]:
        """Apply *read* to the *cells* of *column* that `complete` returned."""
        return [self.one(*row, column, read) for row in zip(self.kept, cells, strict=True)]

    def each(self, column: str, read: Callable[[Any], Cell]) -> list[Cell]:
        """Apply *read* to every cell of *column*."""
        cells = [cell(record.values, column) for record in self.records]
        if not any(held(record.values, column) for record in self.records):
            offered = ", ".join(dict.fromkeys(name for record in self.records for name in record.values))
            raise BadInput(f"{self.path}: no column {column}; there are {offered}")
        return [self.one(*row, column, read) for row in zip(self.records, cells, strict=True)]

    def one(self, record: Record, content: Cell, column: str, read: Callable[[Cell], Found]) -> Found:
        try:
            return read(content)
        except ValueError as exc:
            raise BadInput(f"{self.path}, row {record.number}, column {column}: {exc}") from exc

    def number(self, cell: Any) -> float:
        """Return the number in a cell, also in quotes; NaN for an empty cell."""
        if isinstance(cell, str) and '"' in cell:
            cell = cell.replace('"', "")
            self.unquoted += 1
        if empty(cell):
            return nan
        value = number(cell)
        if not isfinite(value) and not isnan(value):
            raise ValueError(f"{cell!r} is not finite")
        return value


def listed(values: Mapping[str, Any]) -> list[Any]:
    """Return the metrics of a line of `scoregate batch` whose lower scores are the better ones."""
    cell = values.get("lower_is_better")
    if isinstance(cell, str):  # in Parquet
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            cell = None
    return cell if isinstance(cell, list) else []


def read(path: Path | str) -> Table:
    """
    Return all rows of a file whose name ends in .csv, .jsonl, .ndjson or .parquet, with or without .gz.

    A line of `scoregate batch` is a row with the columns that its `scores` and `columns` name.

    Raises:
        BadInput: the file is of another kind, has a row that cannot be read, or no row at all.
        OSError: it can't be read.
    """
    path = Path(path)
    rows = list(records(path))
    for row in rows:
        if row.fault:
            raise BadInput(f"{path}, row {row.number}: {row.fault}")
    if not rows:
        raise BadInput(f"{path}: there is no row")
    return Table(path, rows)


def cell(values: Mapping[str, Any], column: str) -> Any:
    """Return a row's cell, also of a line of `scoregate batch`; None if missing."""
    places = [values, *(values[name] for name in NESTED if isinstance(values.get(name), Mapping))]
    return next((place[column] for place in places if column in place), None)


def held(values: Mapping[str, Any], column: str) -> bool:
    """Return True if a row has the column, or `scoregate batch` says that its score is missing."""
    places = [values, *(values.get(name) for name in (*NESTED, "errors"))]
    return any(isinstance(place, Mapping) and column in place for place in places)


def empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def text(cell: Any) -> str | None:
    """Return a cell as text; None if it is empty, or NaN."""
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # a Parquet column of whole numbers with empty cells has floats
    return None if empty(cell) or cell != cell else str(cell)


def name(cell: Any) -> str:
    found = text(cell)
    if found is None:
        raise ValueError("the cell is empty")
    return found


def label(cell: Any) -> float:
    """Return 1 for 1 and true, 0 for 0 and false, NaN for an empty cell."""
    if empty(cell) or cell != cell:
        return nan
    value = LABELS.get(str(cell).strip().lower())
    if value is None:
        raise ValueError(f"{cell!r} is not a label, which is 0, 1, true or false")
    return value
