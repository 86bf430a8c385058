"""
Results of `scoregate batch` as tables, in Parquet and CSV.

In Parquet, scores, errors and the data set's columns are nested and have types; all else is JSON text.  In
CSV, each metric and each column of the data set is a column, and an empty cell is no score.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from scoregate.data.rows import is_column
from scoregate.records import arrow, json_or_text, records
from scoregate.runs.plan import Line, checked

# Objects and lists whose shape differs from row to row.
TEXTS = (
    "models",
    "options",
    "own_options",
    "own_metrics",
    "question_sets",
    "details",
    "warnings",
    "lower_is_better",
    "orient",
)
PLAIN = ("row", "image", "prompt", "sha256")
ROWS = 1000  # that are written together
LARGEST = 2**63
NESTED = ("scores", "columns")  # of a line; in CSV each of their entries is a column
OWN = "columns."  # before the name of a column of the data set that is a name of ours in CSV, or begins so


class ColumnKind(NamedTuple):
    """The type of a column's cells, or of the entries of its lists."""

    of: type
    lists: bool = False

    def convert(self, cell: Any) -> Any:
        """Return *cell* as the column holds it; a list in a column of texts is JSON."""
        if cell is None or (isinstance(cell, list) and not self.lists):
            return None if cell is None else json.dumps(cell)
        if isinstance(cell, list):
            return [None if each is None else as_text(self.of(each)) for each in cell]
        return as_text(self.of(cell))


def write_parquet(path: Path, lines: Callable[[], Iterator[Line]], metrics: Sequence[str]) -> None:
    """Write *lines* to *path*; they are iterated twice."""
    pyarrow, writer = arrow()
    kinds = kinds_of_columns(map(as_texts, lines()))
    schema = pyarrow.schema(fields(pyarrow, metrics, kinds))
    with path.open("wb") as opened, writer.ParquetWriter(opened, schema) as file:  # a name may be no UTF-8
        rest = map(as_texts, lines())
        while some := [flat(line, kinds) for line in islice(rest, ROWS)]:
            file.write_table(pyarrow.Table.from_pylist(some, schema))


def fields(pyarrow: Any, metrics: Sequence[str], kinds: dict[str, ColumnKind]) -> list[Any]:
    """Return the columns of the file."""
    text = pyarrow.string()
    arrows = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64(), str: text}
    error = pyarrow.struct([("code", text), ("detail", text)])
    named = [("row", pyarrow.int64()), ("image", text), ("prompt", text), ("sha256", text)]
    named.append(("scores", pyarrow.struct([(metric, pyarrow.float64()) for metric in metrics])))
    named.append(("errors", pyarrow.struct([(metric, error) for metric in metrics])))
    if kinds:
        of = {
            name: pyarrow.list_(arrows[kind.of]) if kind.lists else arrows[kind.of]
            for name, kind in kinds.items()
        }
        named.append(("columns", pyarrow.struct(list(of.items()))))
    return [*named, *((name, text) for name in TEXTS)]


def kinds_of_columns(lines: Iterator[Line]) -> dict[str, ColumnKind]:
    """Return the type of each of the data set's own columns; text if its cells are of several."""
    seen: dict[str, dict[bool, set[type]]] = {}
    for line in lines:
        for name, cell in line.get("columns", {}).items():
            kinds = seen.setdefault(name, {})
            if cell is not None:
                cells = cell if isinstance(cell, list) else [cell]
                kinds.setdefault(isinstance(cell, list), set()).update(map(type_of, cells))
    return {name: kind_of(kinds) for name, kinds in seen.items()}


def type_of(cell: Any) -> type:
    return str if type(cell) is int and not -LARGEST <= cell < LARGEST else type(cell)


def kind_of(kinds: Mapping[bool, set[type]]) -> ColumnKind:
    """Return the kind of a column; *kinds* are the types in its lists (True) and outside them."""
    if len(kinds) > 1:
        return ColumnKind(str)
    lists, found = next(iter(kinds.items()), (False, set[type]()))
    return ColumnKind(one_of(found - {type(None)}), lists)


def one_of(kinds: set[type]) -> type:
    """Return the type that holds values of all *kinds*."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else str


def flat(line: Line, kinds: dict[str, ColumnKind]) -> Line:
    """Return a line as the file holds it."""
    cells = line.get("columns", {})
    columns = {name: kind.convert(cells.get(name)) for name, kind in kinds.items()}
    texts = {name: json.dumps(line[name]) for name in TEXTS if name in line}
    return line | texts | ({"columns": columns} if kinds else {})


def as_texts(line: Line) -> Line:
    """Return *line* with its texts `as_text`: names of columns, prompts, and errors, which quote a name."""
    errors = {
        metric: {name: as_text(each) for name, each in error.items()}
        for metric, error in line["errors"].items()
    }
    columns = {as_text(name): cell for name, cell in line.get("columns", {}).items()}
    named = {name: as_text(line[name]) for name in ("image", "prompt")}
    return line | named | {"errors": errors} | ({"columns": columns} if columns else {})


def as_text(value: Any) -> Any:
    """Return *value* without halves of characters, which Parquet cannot hold."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def write_csv(path: Path, lines: Callable[[], Iterator[Line]], metrics: Sequence[str]) -> None:
    """Write *lines* to *path*; they are iterated twice."""
    own = list(dict.fromkeys(name for line in map(as_texts, lines()) for name in line.get("columns", {})))
    ours = [*PLAIN, *metrics, "errors"]
    taken = {*ours, *TEXTS, *NESTED}
    renamed = (f"{OWN}{name}" if name in taken or name.startswith(OWN) else name for name in own)
    heads = [*ours, *renamed, *TEXTS]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        for line in map(as_texts, lines()):
            scores, columns = line["scores"], line.get("columns", {})
            cells = [line[name] for name in PLAIN] + [scores.get(metric) for metric in metrics]
            cells += [json.dumps(line["errors"]) if line["errors"] else None]
            cells += [cell_of(columns.get(name)) for name in own]
            cells += [json.dumps(line[name]) if name in line else None for name in TEXTS]
            writer.writerow(map(as_text, cells))


def cell_of(cell: Any) -> Any:
    """Return a cell of the data set as CSV holds it: a text, or else JSON."""
    return cell if cell is None or isinstance(cell, str) else json.dumps(cell)


WRITERS = {".parquet": write_parquet, ".csv": write_csv}


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that one of `WRITERS` wrote.  Raises `BadInput` for an invalid one."""
    for record in records(path):
        yield checked(line_of(record.values), f"{path}, row {record.number}")


def line_of(values: Mapping[str, Any]) -> Line:
    """Return a row as a line; text that is not JSON is kept, and makes the line invalid."""
    line = nested(values)
    for name in ("scores", "errors"):
        cells = line.get(name) or {}
        if isinstance(cells, dict):
            cells = {metric: value for metric, value in cells.items() if value is not None}
        line[name] = cells
    for name in TEXTS:
        text = line.pop(name, None)
        if text is not None:
            line[name] = parsed(text)
    return line


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return a row of results in CSV as a row of Parquet; any other row unchanged.

    The metrics are the columns between `sha256` and `errors`, and the data set's columns follow these.
    """
    if "scores" in values or not values.keys() >= {*PLAIN, "errors", TEXTS[0]}:
        return dict(values)
    cells = {name: None if cell == "" else cell for name, cell in values.items()}
    names = list(cells)
    last, own = names.index("errors"), names.index(TEXTS[0])
    found = {name: cells[name] for name in (*PLAIN, *names[own:])}
    found |= {"row": json_or_text(values["row"]), "errors": parsed(cells["errors"]) or {}}
    found["scores"] = typed(cells, names[len(PLAIN) : last])
    columns = typed(cells, names[last + 1 : own])
    return found | {"columns": {name.removeprefix(OWN): cell for name, cell in columns.items()}}


def typed(cells: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the cells of CSV that have these *names*, parsed if they are JSON of what columns hold."""
    found = {name: None if cells[name] is None else json_or_text(cells[name]) for name in names}
    return {name: cell if is_column(cell) else cells[name] for name, cell in found.items()}


def parsed(cell: Any) -> Any:
    """Parse the JSON in a cell; return the cell itself if it is not JSON."""
    try:
        return json.loads(cell)
    except (ValueError, TypeError, RecursionError):
        return cell
