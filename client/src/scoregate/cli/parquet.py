"""Results of `scoregate batch` as Parquet: scores, errors, the data set's columns; all else as JSON text."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from scoregate.cli.lines import Line, checked
from scoregate.cli.records import arrow, records

# Objects and lists whose shape differs from row to row.
TEXTS = ("models", "options", "own_options", "question_sets", "details", "warnings", "lower_is_better")
ROWS = 1000  # that are written together
LARGEST = 2**63


def write_lines(path: Path, lines: Callable[[], Iterator[Line]], metrics: Sequence[str]) -> None:
    """Write *lines* to *path*; they are iterated twice."""
    pyarrow, writer = arrow()
    kinds = kinds_of_columns(lines())
    schema = pyarrow.schema(fields(pyarrow, metrics, kinds))
    with writer.ParquetWriter(path, schema) as file:
        rest = lines()
        while some := [flat(line, kinds) for line in islice(rest, ROWS)]:
            file.write_table(pyarrow.Table.from_pylist(some, schema))


def fields(pyarrow: Any, metrics: Sequence[str], kinds: dict[str, type]) -> list[Any]:
    """Return the columns of the file."""
    text = pyarrow.string()
    arrows = {bool: pyarrow.bool_(), int: pyarrow.int64(), float: pyarrow.float64(), str: text}
    error = pyarrow.struct([("code", text), ("detail", text)])
    named = [("row", pyarrow.int64()), ("image", text), ("prompt", text), ("sha256", text)]
    named.append(("scores", pyarrow.struct([(metric, pyarrow.float64()) for metric in metrics])))
    named.append(("errors", pyarrow.struct([(metric, error) for metric in metrics])))
    if kinds:
        named.append(("columns", pyarrow.struct([(name, arrows[kind]) for name, kind in kinds.items()])))
    return [*named, *((name, text) for name in TEXTS)]


def kinds_of_columns(lines: Iterator[Line]) -> dict[str, type]:
    """Return the type of each of the data set's own columns; text if its cells are of several."""
    seen: dict[str, set[type]] = {}
    for line in lines:
        for name, cell in line.get("columns", {}).items():
            kinds = seen.setdefault(name, set())
            if cell is not None:
                kinds.add(str if type(cell) is int and not -LARGEST <= cell < LARGEST else type(cell))
    return {name: one_of(kinds) for name, kinds in seen.items()}


def one_of(kinds: set[type]) -> type:
    """Return the type that holds values of all *kinds*."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return float if kinds == {int, float} else str


def flat(line: Line, kinds: dict[str, type]) -> Line:
    """Return a line as the file holds it."""
    cells = line.get("columns", {})
    columns = {
        name: None if cells.get(name) is None else as_text(kind(cells[name])) for name, kind in kinds.items()
    }
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
