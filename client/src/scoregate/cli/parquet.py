"""Results of `scoregate batch` as Parquet: scores, errors, the data set's columns; all else as JSON text."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from scoregate.cli.lines import Line, checked
from scoregate.records import arrow, records

# Objects and lists whose shape differs from row to row.
TEXTS = (
    "models",
    "options",
    "own_options",
    "question_sets",
    "details",
    "warnings",
    "lower_is_better",
    "orient",
)
ROWS = 1000  # that are written together
LARGEST = 2**63


class Kind(NamedTuple):
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


def write_lines(path: Path, lines: Callable[[], Iterator[Line]], metrics: Sequence[str]) -> None:
    """Write *lines* to *path*; they are iterated twice."""
    pyarrow, writer = arrow()
    kinds = kinds_of_columns(lines())
    schema = pyarrow.schema(fields(pyarrow, metrics, kinds))
    with writer.ParquetWriter(path, schema) as file:
        rest = lines()
        while some := [flat(line, kinds) for line in islice(rest, ROWS)]:
            file.write_table(pyarrow.Table.from_pylist(some, schema))


def fields(pyarrow: Any, metrics: Sequence[str], kinds: dict[str, Kind]) -> list[Any]:
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


def kinds_of_columns(lines: Iterator[Line]) -> dict[str, Kind]:
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


def kind_of(kinds: Mapping[bool, set[type]]) -> Kind:
    """Return the kind of a column; *kinds* are the types in its lists (True) and outside them."""
    if len(kinds) > 1:
        return Kind(str)
    lists, found = next(iter(kinds.items()), (False, set[type]()))
    return Kind(one_of(found - {type(None)}), lists)


def one_of(kinds: set[type]) -> type:
    """Return the type that holds values of all *kinds*."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else str


def flat(line: Line, kinds: dict[str, Kind]) -> Line:
    """Return a line as the file holds it."""
    cells = line.get("columns", {})
    columns = {name: kind.convert(cells.get(name)) for name, kind in kinds.items()}
    texts = {name: json.dumps(line[name]) for name in TEXTS if name in line}
    named = {name: as_text(line[name]) for name in ("image", "prompt")}
    return line | named | texts | ({"columns": columns} if kinds else {})


def as_text(value: Any) -> Any:
    """Return *value* without halves of characters, which Parquet cannot hold."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that `write_lines` wrote.  Raises `UsageFault` for an invalid one."""
    for record in records(path):
        place = f"{path}, row {record.number}"
        yield checked(line_of(record.values), place)


def line_of(values: Mapping[str, Any]) -> Line:
    """Return a row as a line; text that is not JSON is kept, and makes the line invalid."""
    line = dict(values)
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


def parsed(cell: Any) -> Any:
    """Parse the JSON in a cell; return the cell itself if it is not JSON."""
    try:
        return json.loads(cell)
    except (ValueError, TypeError, RecursionError):
        return cell
