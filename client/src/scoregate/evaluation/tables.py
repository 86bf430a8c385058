"""Tables from CSV, JSON Lines and Parquet files, also with `.gz`, read by column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from scoregate.errors import InputError, NoColumnError, named
from scoregate.evaluation.arrays import Floats
from scoregate.records import Record, cell_number, json_cell, json_of, kind, truth
from scoregate.runs.results import records_in

NESTED_FIELDS = ("columns", "scores")  # a line that `scoregate batch` wrote has them
GENERATOR = "generator"  # the column that names the file of a row, of several
LOWER_FIELD = "lower_is_better"  # a line has here the metrics whose lower scores are better

T = TypeVar("T")


@dataclass
class Table:
    """
    The rows of a file, or of several.

    Attributes:
        place: of the rows, for errors.
        dropped: rows that `complete` left out, for an empty cell.
        unquoted: numbers that stood in quotes inside their cell.
        turned: whether `worth` turned the sign of a column.
        kept: the rows that `complete` returned.
        incomplete: rows that were left out before, since another metric lacks a score there.
        joined: how the rows of other files were joined with these, a line for each.
    """

    place: str
    records: list[Record]
    dropped: int = 0
    unquoted: int = 0
    turned: bool = False
    kept: Sequence[Record] = ()
    incomplete: Sequence[Record] = ()
    joined: tuple[str, ...] = ()

    def numbers(self, column: str) -> Floats:
        """Return the column as numbers, NaN if a cell is empty or NaN.  Raises `InputError`."""
        found = np.array(self.each(column, cell_number), dtype=np.float64)
        cells = [record.values.get(column) for record in self.records]
        self.unquoted += len([cell for cell in cells if isinstance(cell, str) and '"' in cell])
        return found

    def worth(self, column: str, *, lower: bool = False) -> Floats:
        """
        Return the column as numbers, negated if lower ones are better.

        Args:
            lower: whether they are.  A result of `scoregate batch` says it by itself.
        """
        numbers = self.numbers(column)
        said = (each.values.get(LOWER_FIELD) for each in self.records)
        self.turned = lower or any(isinstance(cell, list) and column in cell for cell in said)
        return 0.0 - numbers if self.turned else numbers

    def labels(self, column: str) -> Floats:
        """Return the same for truth values: 1 and true, 0 and false."""
        return np.array(self.each(column, label), dtype=np.float64)

    def texts(self, column: str) -> list[str | None]:
        """Return the column as texts, None if a cell is empty."""
        return self.each(column, text)

    def names(self, column: str) -> list[str]:
        """Return the same.  Raises `InputError` if a cell is empty."""
        return self.each(column, name)

    def has(self, column: str) -> bool:
        """Return True if a row has the column, or `scoregate batch` says that its score is missing."""
        return any(
            column in each.values
            or (isinstance(errors := each.values.get("errors"), Mapping) and column in errors)
            for each in self.records
        )

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

    def each(self, column: str, read: Callable[[Any], T], cells: Sequence[Any] | None = None) -> list[T]:
        """
        Apply *read* to every cell of *column*, or to those *cells* of it that `complete` returned.

        Raises:
            InputError: there is no such column, or *read* raises `ValueError` for a cell.
        """
        records = self.kept
        if cells is None:
            records, cells = self.records, [record.values.get(column) for record in self.records]
            if all(cell is None for cell in cells) and not self.has(column):
                every = (name for record in self.records for name in record.values)
                raise NoColumnError(self.place, column, every)
        found, place = [], ""
        try:
            for record, cell in zip(records, cells, strict=True):
                place = record.name or f"{self.place}, row {record.number}"
                found.append(read(cell))
        except ValueError as exc:
            raise InputError(f"{place}, column {column}: {exc}") from exc
        return found


def read_table(path: Path | str) -> Table:
    """
    Return all rows of a file whose name ends in .csv, .jsonl, .ndjson or .parquet, with or without .gz, or of
    the results in a folder.

    A line of `scoregate batch` is a row with the columns that its `scores` and `columns` name.

    Raises:
        InputError: the file is of another kind, has a row that cannot be read, or no row at all.
        OSError: it can't be read.
    """
    path = Path(path)
    rows = list(records_in(path))
    if fault := next((row for row in rows if row.fault), None):
        raise InputError(f"{fault.name or f'{path}, row {fault.number}'}: {fault.fault}")
    if not rows:
        raise InputError(f"{path}: there is no row")
    nested = {*NESTED_FIELDS, LOWER_FIELD}
    return Table(
        str(path),
        [replace(row, values=flat(row.values)) if nested & row.values.keys() else row for row in rows],
    )


def rows_of(path: Path) -> Table:
    """Return the rows of a table, or of a `.json` with a list of objects or an object of them."""
    if kind(path) != ".json":
        return read_table(path)
    content = json_of(path)
    entries = list(content.values()) if isinstance(content, Mapping) else content
    if not (isinstance(entries, list) and entries and all(isinstance(each, Mapping) for each in entries)):
        raise InputError(f"{path}: neither a list of objects nor an object of them")
    return Table(str(path), [Record(number, each) for number, each in enumerate(entries, 1)])


def first_of(table: Table, *names: str) -> str:
    """Return the first of these columns that *table* has, else the first: releases name it differently."""
    return next(filter(table.has, names), names[0])


def joined(paths: Mapping[str, Path]) -> Table:
    """
    Return the rows of several files of results, or folders of them, with their names as `GENERATOR`.

    The only file keeps a column of that name, if it has one.

    Raises:
        InputError: as `read_table`, or one of several files has the column.
    """
    found: list[Record] = []
    for name, path in paths.items():
        for row in read_table(path).records:
            if GENERATOR in row.values and len(paths) > 1:
                raise InputError(
                    f"{path} has a column {GENERATOR} of its own: give one table by {named('table')}"
                )
            values = {GENERATOR: name, **row.values}
            found.append(Record(len(found) + 1, values, name=row.name or f"{path}, row {row.number}"))
    return Table(", ".join(map(str, paths.values())), found)


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of `scoregate batch` as a row in which its scores and columns are cells."""
    found = {name: cell for name, cell in values.items() if name not in NESTED_FIELDS}
    for name in reversed(NESTED_FIELDS):
        if isinstance(nested := values.get(name), Mapping):
            found = {**nested, **found}
        elif name in values:
            found[name] = nested
    lower = {LOWER_FIELD: json_cell(found[LOWER_FIELD])} if LOWER_FIELD in found else {}  # a text in Parquet
    return found | lower


def text(cell: Any) -> str | None:
    """Return a cell as text; None if it is empty, or NaN."""
    if isinstance(cell, str):
        return cell if cell.strip() else None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)  # a Parquet column of whole numbers with empty cells has floats
    return None if cell is None or cell != cell else str(cell)


def name(cell: Any) -> str:
    found = text(cell)
    if found is None:
        raise ValueError("the cell is empty")
    return found


def label(cell: Any) -> float:
    """Return 1 for 1 and true, 0 for 0 and false, NaN for an empty cell."""
    return nan if text(cell) is None else float(truth(cell))


def values(cell: Any) -> list[str]:
    """Return the values of a cell: those of a list, also of one written as JSON; none if it is empty."""
    cell = json_cell(cell)
    cells = cell if isinstance(cell, list | tuple) else [cell]
    return list(dict.fromkeys(found for each in cells if (found := text(each)) is not None))
