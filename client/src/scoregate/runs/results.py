"""
The results file of `scoregate batch`: appended during a run, sorted at its end; read also offline.

It has a line for each row of the data set, in order: `row` (from 1), `image`, `prompt`, `sha256` (of its
pictures), `scores`, `errors` (a code and a detail by metric), `models`, `warnings`, and if there are any
`lower_is_better`, `orient`, `options` (of the run), `own_options` (of the row), `question_sets`, `details`,
and further `columns` of the data set. In CSV each metric and each column of the data set is a column, an
empty cell is no score, and other fields are JSON. A column with the name of one of these fields becomes
`columns.NAME`. Texts are written as they are, also those that begin with `=`, since the next run reads the
file: import them as text where a spreadsheet would run them as formulas.

Lines whose rows left the data set stay at the end, with the row 0, for a run in which they are back.  They
count in no figure.
"""

import csv
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import chain, combinations, filterfalse, islice
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from scoregate.data.datasets import Dataset
from scoregate.data.rows import QUESTION_SET, RELATED_COLUMNS, Row, is_column
from scoregate.errors import InputError
from scoregate.images import digest
from scoregate.records import (
    NO_ROW,
    PLAIN,
    Record,
    Store,
    arrow,
    check_regular,
    dumped,
    json_or_text,
    records,
    stem,
)
from scoregate.runs.batch_settings import KINDS, check_kind
from scoregate.runs.plan import (
    DECISION_FIELDS,
    Line,
    LineKey,
    Plan,
    checked,
    finite,
    is_line,
    is_unreadable,
    key,
    loaded,
)
from scoregate.text import complain

log = logging.getLogger("scoregate.results")

JOURNAL = ".part.jsonl"  # the end of the name of a file with the lines of a run, next to a table


def check_replaced(file: Path) -> None:
    """Raise `InputError` for a file of something else, which results would take the place of."""
    if not file.is_file() or not file.stat().st_size or results_in(file):
        return
    with file.open("rb") as opened:
        # a run may have ended in its first line
        if file.suffix.lower() in WRITERS or opened.readline().endswith(b"\n"):
            raise InputError(f"{file} is no result of `scoregate batch`: name another file")


def journal_of(out: Path) -> Path:
    """Return the path of the lines of a run: OUT itself, or for a table a file next to it."""
    return out.with_name(f"{out.name}{JOURNAL}") if out.suffix.lower() in WRITERS else out


def files_of(shards: Iterable[Path], folder: Path) -> dict[Path, Path]:
    """Return the file of each shard's results in *folder*, with the shard."""
    return {folder / f"{stem(shard)}.parquet": shard for shard in shards}


class Results(Store[LineKey]):
    """
    Lines by row of the data set.

    Args:
        file, name: as of `Store`; by default there are no earlier lines, and new ones are in memory.

    Attributes:
        order: the offset of the line of each row of this run.
        set_ids: the ids of the question sets that the lines of this run name.

    Raises:
        InputError: the file holds something else, or scores of another plan.
    """

    FIRST = ("row", "image")

    def __init__(self, plan: Plan, file: BinaryIO | Path | None = None, name: str = "results") -> None:
        self.plan = plan
        self.order: dict[int, int] = {}
        self.set_ids: set[str] = set()
        super().__init__(file or BytesIO(), name)

    def parsed(self, data: bytes, place: str) -> Line:
        """Return a line of an earlier run.  Raises `InputError`."""
        line = loaded(data, place)
        self.plan.check(line, place)
        return line

    def key(self, line: Line) -> LineKey:
        """Return the key of the line's row."""
        return key(line)

    def earlier(self, row: Row) -> Line | None:
        """Return the line of the same pictures, which were read, with the same prompt and options, if any."""
        known = self.get(row.key)
        return known if known and known["sha256"] == row.sha256 else None

    def keep(self, row: Row, known: Line) -> None:
        """Keep a line of an earlier run, with the row's current number and columns, and its decision now."""
        decided = self.plan.decided(known)
        self.order[row.number] = self.starts[key(known)]
        self.set_ids.update(known.get("question_sets", {}).values())
        moved = known["row"] != row.number or known.get("columns", {}) != finite(row.columns)
        if moved or decided != known:
            columns = {"columns": finite(row.columns)} if row.columns else {}
            self.add(
                row,
                {name: v for name, v in decided.items() if name != "columns"} | {"row": row.number} | columns,
            )

    def add(self, row: Row, line: Line) -> None:
        """Append *line*, in place of an earlier one of the same row."""
        self.order[row.number] = self.append(line, row.key)
        self.set_ids.update(line.get("question_sets", {}).values())
        self.flush()

    def lines(self) -> Iterator[Line]:
        """Return the lines of this run, in the order of the data set."""
        return map(self.at, [self.order[number] for number in sorted(self.order)])

    @property
    def left_over(self) -> list[int]:
        """The offsets of lines that were sent and have no row in this run; they stay, after all others."""
        others = set(self.starts.values()) - set(self.order.values())
        return sorted(start for start in others if not is_unreadable(self.at(start)))

    def mark_left_over(self) -> None:
        """Give lines without a row in this run the row 0, so that no figure has them."""
        for line in map(self.at, self.left_over):
            if line["row"] != NO_ROW:
                self.append(line | {"row": NO_ROW}, key(line))


class ResultsFile(Results, AbstractContextManager["ResultsFile"]):
    """
    A file of results, as a context manager; its exit sorts the file.

    During a run lines are appended to a JSON Lines file: OUT itself, or for a table a journal next to it.
    An exception that ends the run prints how many rows are kept.

    Args:
        out: of a kind of `check_kind`.
        whole: write a table only if no exception ends the run, so that the file has every row or is absent.

    Raises:
        InputError: *out* holds something else, or scores of another plan.
    """

    def __init__(self, out: Path, plan: Plan, *, whole: bool = False) -> None:
        self.out, self.whole = out, whole
        self.write_table = WRITERS.get(out.suffix.lower())
        self.journal = journal_of(out)
        self._written = out.with_name(f"{out.name}.new")  # it takes the place of a file in one step
        if self.write_table and out.exists() and not self.journal.exists():
            with self._written.open("wb") as file:
                file.writelines(map(dumped, read_lines(out)))
            os.replace(self._written, self.journal)
        super().__init__(plan, self.journal)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:  # after an error some rows have no line yet
            self.mark_left_over()
        starts = [*(self.order[number] for number in sorted(self.order)), *self.left_over]
        in_order = len(starts) == self.count and starts == sorted(starts)
        if self.whole and error is not None and starts:
            self.close()
            say_kept(error, len(starts), self.journal)
            return
        try:
            if self.write_table and starts:
                self.write_table(self._written, lambda: map(self.at, starts), self.plan.metrics)
            elif not in_order:
                self.copy(starts, self._written)
        finally:
            self.close()
        if self._written.exists():
            os.replace(self._written, self.out)
        if self.write_table or not starts:
            self.journal.unlink()
        if error is not None and not self.whole:
            say_kept(error, len(starts), self.out)


def say_kept(error: BaseException, kept: int, place: Path) -> None:
    """Print how many rows are kept in *place*, when *error* ends a run."""
    interrupted = isinstance(error, KeyboardInterrupt)
    more = "" if isinstance(error, InputError) else f", and {RESUME_NOTE}"  # it would fail again otherwise
    what = f"{kept} rows are kept in {place}{more}" if kept else "no row was scored yet"
    if kept or interrupted:
        complain(f"scoregate: {'interrupted' if interrupted else 'stopped'}: {what}")


RESUME_NOTE = "the same command goes on from there"
NOT_SCORED, CHANGED = "not_scored", "picture_changed"


@contextmanager
def existing(
    dataset: Dataset, file: Path, metrics: Sequence[str] | None = None, *, allow_model_change: bool = False
) -> Iterator[Results]:
    """
    Yield the results in *file* for the rows of *dataset*; a missing result is an error.

    Raises:
        InputError: the file holds something else, other *metrics*, or scores that are not comparable.
        OSError: the file cannot be read.
    """
    plan = plan_in(file)
    plan = replace(plan, metrics=metrics or plan.metrics, allow_model_change=allow_model_change)
    dataset = replace(dataset, metrics=plan.metrics, asking=pinned(file), texts=texts_of(file))
    with TemporaryFile() as copy:
        copy.writelines(map(dumped, every_line_of(file)))
        results = Results(plan, copy, str(file))
        for row in dataset:
            take(results, row)
        yield results


def plan_in(file: Path) -> Plan:
    """Return the plan of the run that wrote *file*, with the models of its first line with a score."""
    check_kind(file)
    first, mixed = dict[str, Any](), False
    metrics, models = dict[str, None](), dict[str, str]()
    for each in every_line_of(file):
        mixed |= "own_metrics" in each
        metrics |= dict.fromkeys([*each["scores"], *each["errors"]])
        models = {**each.get("models", {}), **models}
        first = first if first.get("scores") else each if each["scores"] else first or each
    if not first:
        raise InputError(f"{file}: there is no result")
    return Plan(
        [*metrics] if mixed else [*first["scores"], *first["errors"]],
        models if mixed else first.get("models", {}),
        first.get("options", {}),
        lower=first.get("lower_is_better", ()),
        orient=first.get("orient"),
        mixed=mixed,
    )


def pinned(file: Path) -> list[str]:
    """Return the metrics whose question set is pinned in a row of *file*."""
    own = chain.from_iterable(line.get("own_options", {}).items() for line in lines_of(file))
    return sorted({metric for metric, options in own if QUESTION_SET in options})


def texts_of(file: Path) -> set[str]:
    """Return the options that are texts in all rows of *file*, by `METRIC.OPTION`."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for each in lines_of(file):
        for metric, options in each.get("own_options", {}).items():
            for option, value in options.items():
                found[isinstance(value, str)].add(f"{metric}.{option}")
    return found[True] - found[False]


def lines_of(file: Path) -> Iterator[Line]:
    """Yield the lines of *file* that are of rows.  Raises `InputError` for an invalid one."""
    return (line for line in every_line_of(file) if line["row"] != NO_ROW)


def every_line_of(file: Path) -> Iterator[Line]:
    """Yield all lines of *file*, also those of no row.  Raises as `lines_of`."""
    if file.suffix.lower() in WRITERS:
        yield from read_lines(file)
        return
    check_regular(file)
    with file.open("rb") as opened:
        for number, data in enumerate(opened, 1):
            yield loaded(data, f"{file}, line {number}")


def results_in(path: Path) -> list[Path]:
    """Return the files of results that *path* is or, of shards, has in it; none for a data set."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    first = next((file for file in files if file.suffix.lower() in KINDS and file.is_file()), None)
    if first is None:
        return []
    try:
        record = next(iter(records(first)), None)
        return files if record and is_line(line_of(record.values)) else []
    except (InputError, ValueError):
        return []


def records_in(path: Path) -> Iterator[Record]:
    """
    Return the rows of a table, or those of all results in a folder that `batch` wrote, numbered throughout.

    Lines of results that are of no row are left out.

    Raises:
        InputError: there are no results in the folder; others as `records`.
    """
    return records_below(path) if path.is_dir() else filterfalse(Record.is_left_over, records(path))


def records_below(folder: Path) -> Iterator[Record]:
    """Yield the rows of the results in a folder.  Raises as `records_in`."""
    files = results_in(folder)
    if not files:
        raise InputError(f"{folder}: there are no results of `scoregate batch` in this folder")
    if unfinished := sorted(each.name for each in folder.glob(f"*{JOURNAL}")):
        log.warning("%s: %d shards are not finished, first %s", folder, len(unfinished), unfinished[0])
    each_row = ((file, record) for file in files for record in records_in(file))
    for number, (file, record) in enumerate(each_row, 1):
        yield replace(record, number=number, name=f"{file}, row {record.number}")


def take(results: Results, row: Row) -> None:
    """Add the row's line to *results*; a picture that is no longer readable keeps its scores."""
    known, plan = results.get(row.key), results.plan
    if row.fault:
        results.add(row, plan.unreadable(row, row.fault))
    elif known is None:
        results.add(row, plan.without_scores(row, NOT_SCORED, "the results hold no line of this row"))
    elif (sha256 := known["sha256"]) and sha256 not in (digests(row) or {sha256}):
        results.add(row, plan.without_scores(row, CHANGED, "the results are about another picture"))
    else:
        results.keep(row, known)


def digests(row: Row) -> set[str]:
    """
    Return the hash of the row's picture, alone and with its related pictures; empty if one is unreadable.

    The results do not say which of the related pictures the metrics used.
    """
    try:
        data, *frames = row.read_frames()
        related = {column: row.read_related(column) for column in RELATED_COLUMNS}
    except (OSError, ValueError):
        return set()
    uses = chain.from_iterable(
        combinations(RELATED_COLUMNS, count) for count in range(len(RELATED_COLUMNS) + 1)
    )
    return {digest(data, *frames, *chain.from_iterable(related[column] for column in used)) for used in uses}


# --- tables: Parquet and CSV ---


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
ROWS_PER_GROUP = 1000  # rows that are written together
INTEGER_LIMIT = 2**63
NESTED_FIELDS = ("scores", "columns")  # each entry of these fields of a line is a column in CSV
OWN_COLUMN_PREFIX = (
    "columns."  # before the name of a column of the data set that is a name of ours in CSV, or begins so
)


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
    decided = set[str]()
    kinds = kinds_of_columns(noted(map(as_texts, lines()), decided))
    text = pyarrow.string()
    schema = pyarrow.schema([*fields(pyarrow, metrics, kinds), *((name, text) for name in sorted(decided))])
    with path.open("wb") as opened, writer.ParquetWriter(opened, schema) as file:  # a name may be no UTF-8
        rest = map(as_texts, lines())
        while some := [flat(line, kinds) for line in islice(rest, ROWS_PER_GROUP)]:
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


def noted(lines: Iterable[Line], decided: set[str]) -> Iterator[Line]:
    """Yield *lines*, and add the fields of decisions that they have to *decided*."""
    for line in lines:
        decided.update(DECISION_FIELDS & line.keys())
        yield line


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
    return str if type(cell) is int and not -INTEGER_LIMIT <= cell < INTEGER_LIMIT else type(cell)


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
    decided = set[str]()
    every = noted(map(as_texts, lines()), decided)
    own = list(dict.fromkeys(name for line in every for name in line.get("columns", {})))
    ours = [*PLAIN, *metrics, "errors"]
    taken = {*ours, *TEXTS, *decided, *NESTED_FIELDS}
    renamed = (
        f"{OWN_COLUMN_PREFIX}{name}" if name in taken or name.startswith(OWN_COLUMN_PREFIX) else name
        for name in own
    )
    last = sorted(decided)
    heads = [*ours, *renamed, *TEXTS, *last]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        for line in map(as_texts, lines()):
            scores, columns = line["scores"], line.get("columns", {})
            cells = [line[name] for name in PLAIN] + [scores.get(metric) for metric in metrics]
            cells += [json.dumps(line["errors"]) if line["errors"] else None]
            cells += [cell_of(columns.get(name)) for name in own]
            cells += [json.dumps(line[name]) if name in line else None for name in TEXTS]
            cells += [line.get(name) for name in last]
            writer.writerow(map(as_text, cells))


def cell_of(cell: Any) -> Any:
    """Return a cell of the data set as CSV holds it: a text, or else JSON."""
    return cell if cell is None or isinstance(cell, str) else json.dumps(cell)


WRITERS = {".parquet": write_parquet, ".csv": write_csv}


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that one of `WRITERS` wrote.  Raises `InputError` for an invalid one."""
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
    return {name: cell for name, cell in line.items() if cell is not None or name not in DECISION_FIELDS}


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
    return found | {"columns": {name.removeprefix(OWN_COLUMN_PREFIX): cell for name, cell in columns.items()}}


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
