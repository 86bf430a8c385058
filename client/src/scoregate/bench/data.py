"""
A benchmark's data as a table: the user's copy, joined with scores from other files.

* **DATA** is the authors' file (`.json`, `.csv`, `.jsonl`, `.parquet`, also with `.gz`), or a result of
  `scoregate batch`.
* **`--scores FILE`** (repeatable) adds scores by the key of the benchmark's section; `joined` counts its
  rows with a partner. **`--by-order`** joins row by row.
* **`--metric COLUMN`** selects the metrics, by default all columns of numbers that the benchmark does not
  use. One without figures has the reason in `undefined`.
* **`--bootstrap N`**, **`--cluster`** (`geneval`, `winoground`, `eqben`): intervals, and `differences` of
  each two.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Annotated, Any, Generic, TypeVar

from scoregate.errors import ColumnError, InputError, NoColumnError, named
from scoregate.evaluation.arrays import Floats
from scoregate.evaluation.tables import LOWER_FIELD, Table, rows_of, text
from scoregate.records import Record
from scoregate.runs.plan import FIELDS, LINE_LIST_FIELDS, OBJECTS
from scoregate.settings import MetricNames, Setting

JoinColumns = Mapping[str, str]  # columns of the data, each with that of the scores that has the same values
Tags = Mapping[str, Sequence[str]]  # tags of an item; none if it is left out

LINE_FIELDS = {
    *FIELDS,
    *OBJECTS,
    *LINE_LIST_FIELDS,
}  # fields of a line of `scoregate batch` that are no metric


@dataclass(frozen=True, kw_only=True)
class ScoreSettings:
    """Settings of a benchmark of metrics: the data, files of scores, and their columns that are metrics."""

    data: Annotated[Path, Setting("your copy of the data", option=False)]
    scores: Annotated[
        Sequence[Path],
        Setting(
            "scores that DATA lacks: a result of `scoregate batch` or a table; may be given several times",
            metavar="FILE",
            several=True,
        ),
    ] = ()
    metric: Annotated[
        Sequence[str],
        MetricNames(
            "the column of its scores; may be given several times, or with commas"
            " (default: all columns of numbers but its own)"
        ),
    ] = ()
    lower_is_better: Annotated[
        Sequence[str],
        Setting(
            "a metric whose lower scores are better; may be given several times",
            metavar="METRIC",
            several=True,
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class JoinSettings(ScoreSettings):
    """Settings of scores that are joined with the rows of DATA by a key, or by their order."""

    by_order: Annotated[
        bool, Setting("join the rows of --scores with those of DATA by their order, without a key")
    ] = False


S = TypeVar("S")


@dataclass(frozen=True)
class MetricBenchmark(Generic[S]):
    """
    A benchmark of metrics.

    Attributes:
        data: what the user's copy of the data is; empty if it has none but answers.
        settings: their class.
        tables_of: the tables by settings.
        answers: what those of a generator are; empty if there are none.
        example: the words of a call of the command, after the benchmark's name.
    """

    name: str
    data: str
    settings: type[S]
    tables_of: Callable[[S], dict[str, Any]]
    answers: str = ""
    example: str = "data --scores scores.jsonl"

    def tables(self, settings: S, service: object = None) -> dict[str, Any]:
        """Return the tables; nothing is scored.  Raises `InputError`."""
        return self.tables_of(settings)


def table_of(settings: JoinSettings, *keys: JoinColumns) -> Table:
    """Return the rows of DATA, joined with all files of scores.  Raises `InputError`."""
    table = rows_of(settings.data)
    for path in settings.scores:
        table = joined(table, rows_of(path), keys, by_order=settings.by_order)
    return table


def joined(data: Table, scores: Table, keys: Sequence[JoinColumns], *, by_order: bool = False) -> Table:
    """
    Return the rows of *data* with the cells of *scores*, by the first key that both have, or by their order.

    Raises:
        InputError: a file lacks every key, a value of one is there twice, or the orders differ in length.
    """
    cells, theirs = data.records[0].values, scores.records[0].values
    if by_order:
        if len(scores.records) != len(data.records):
            raise InputError(
                f"{scores.place}: {len(scores.records)} rows for {len(data.records)} of {data.place}"
            )
        rows = list(map(merged, data.records, scores.records))
        used, how = len(rows), "order"
    elif key := next(
        (each for each in keys if each.keys() <= cells.keys() and {*each.values()} <= theirs.keys()), None
    ):
        how = ", ".join(key.values())
        place = f"{scores.place}, column {how}"
        values = list(zip(*map(scores.names, key.values()), strict=True))
        found = dict(zip(values, scores.records, strict=True))
        if len(found) < len(values):
            raise InputError(f"{place}: a value is there twice")
        names = list(zip(*map(data.names, key), strict=True))
        if not (used := len(found.keys() & {*names})):
            raise InputError(f"{place}: no value is one of {data.place}, column {', '.join(key)}")
        pairs = zip(data.records, map(found.get, names), strict=True)
        rows = [merged(each, other, {*key.values()}) if other else each for each, other in pairs]
    else:
        lacking = scores if any(each.keys() <= cells.keys() for each in keys) else data
        wanted = dict.fromkeys(" and ".join(each.values() if lacking is scores else each) for each in keys)
        place = f"{lacking.place}: no column {' or '.join(wanted)}"
        raise InputError(f"{place} to join by; {named('by_order')} joins rows by their order")
    said = f"{used} of {len(scores.records)} rows of {PurePath(scores.place).name} by {how}"
    return replace(data, records=rows, joined=(*data.joined, said))


def merged(data: Record, scores: Record, key: Collection[str] = ()) -> Record:
    """Return a row with the cells of both.  Raises `InputError` if they differ in a column that both have."""
    a, b = data.values, scores.values
    for name in (a.keys() & b.keys()) - {*key} - LINE_FIELDS:
        if text(a[name]) != text(b[name]):
            raise InputError(
                f"row {data.number}, column {name}: {a[name]!r} in the data, {b[name]!r} in the scores"
            )
    errors = {**(a.get("errors") or {}), **(b.get("errors") or {})}
    lower = [*(a.get(LOWER_FIELD) or ()), *(b.get(LOWER_FIELD) or ())]
    return Record(data.number, {**b, **a, "errors": errors, LOWER_FIELD: lower})


def joins(table: Table) -> dict[str, list[str]]:
    """Return how the rows of other files were joined; nothing without such files."""
    return {"joined": [*table.joined]} if table.joined else {}


def metrics_of(
    settings: ScoreSettings, tables: Iterable[Table], own: set[str], **more: Iterable[str]
) -> list[tuple[Table, str]]:
    """
    Return each metric with its table: those that were named, else all columns of numbers but the *own* ones.

    Args:
        more: the metrics that further settings name, by setting.

    Raises:
        InputError: a named metric is in no table, a table has none, or `--lower-is-better` or another setting
            names one that is not printed, such as a misspelt one.
    """
    found: list[tuple[Table, str]] = []
    offered: dict[str, None] = {}
    for table in tables:
        columns = dict.fromkeys(name for record in table.records for name in record.values)
        offered |= columns
        if settings.metric:
            found += [(table, name) for name in dict.fromkeys(settings.metric) if table.has(name)]
            continue
        probe, before = replace(table), len(found)
        for name in [each for each in columns if each not in own | LINE_FIELDS]:
            with suppress(InputError):  # a column of texts
                cells = probe.numbers(name)
                found += [(table, name)] if (cells == cells).any() else []
        if len(found) == before:
            raise InputError(f"{table.place}: there is no column of scores; name a file by {named('scores')}")
    names = list(dict.fromkeys(name for _, name in found))
    if missing := [name for name in settings.metric if name not in names]:
        files = ", ".join(map(str, settings.scores or [settings.data]))
        raise NoColumnError(files, missing[0], offered)
    for setting, given in {"lower_is_better": settings.lower_is_better, **more}.items():
        if unknown := [name for name in given if name not in names]:
            raise InputError(
                f"{named(setting, unknown[0])}: no such metric is printed; there are {', '.join(names)}"
            )
    return found


def worth(settings: ScoreSettings, table: Table, metric: str) -> Floats:
    """Return the scores of a metric, negated if lower ones are better."""
    return table.worth(metric, lower=metric in settings.lower_is_better)


def mark(table: Table) -> dict[str, bool]:
    """Return the mark of a row whose scores `Table.worth` has negated."""
    return {"lower_is_better": True} if table.turned else {}


def of_each(
    settings: ScoreSettings,
    place: str,
    metrics: Iterable[str],
    figures: Callable[[str], dict[str, Any]],
    **arguments: str,
) -> list[dict[str, Any]]:
    """
    Return a row for each metric.

    One that was not named may be a column of numbers without figures, such as a constant one: then its row
    has the reason.

    Raises:
        InputError: a metric that was named has none, or all are undefined.
    """
    rows: list[dict[str, Any]] = []
    faults: list[InputError] = []
    for metric in metrics:
        try:
            with columns(place, metric=metric, **arguments):
                rows.append({"metric": metric, **figures(metric)})
        except InputError as exc:  # noqa: PERF203, a metric for each
            if settings.metric:
                raise
            faults.append(exc)
            rows.append({"metric": metric, "undefined": str(exc).removeprefix(f"{place}, ")})
    if len(faults) == len(rows):
        raise faults[0]
    return rows


@contextmanager
def columns(place: object, **arguments: str) -> Iterator[None]:
    """Raise `InputError` with file and column for a `ColumnError`; *arguments* are columns by argument."""
    try:
        yield
    except ColumnError as exc:
        raise InputError(f"{place}, column {arguments.get(exc.argument, exc.argument)}: {exc.why}") from exc
