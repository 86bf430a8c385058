"""Rows of logs of decisions as a table: JSON Lines, CSV or Parquet."""

import csv
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from scoregate.decisions.logs import DECISIONS, OBJECTS, Selection, opened, rows_of, time_of
from scoregate.errors import InputError
from scoregate.records import arrow
from scoregate.settings import Setting

ROWS_PER_GROUP = 1000  # rows of Parquet that are written together
NUMBERS = ("milliseconds", "labels", "good")

ExportFields = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ExportSettings(Selection):
    """What is exported, and where to."""

    decision: Annotated[str | None, Setting("rows with this decision", choices=DECISIONS)] = None
    out: Annotated[Path, Setting("the table: .jsonl, .csv or .parquet", ("-o", "--out"), metavar="FILE")]


def export(settings: ExportSettings) -> int:
    """
    Write the rows of all logs, oldest first within each, and return their number.

    A row has its labels from any of the logs: their number in `labels`, and the share of good ones in `good`.
    The file is whole, or is not changed.

    Raises:
        InputError: a log, or the name of the file, is not valid, or a metric has the name of a column.
    """
    write = WRITERS.get(settings.out.suffix.lower())
    if write is None:
        raise InputError(f"{settings.out}: the name must end in {', '.join(WRITERS)}")
    where, values = settings.where()
    if settings.decision:
        where, values = f"{where} AND decision = ?", [*values, settings.decision]
    new = settings.out.with_name(f"{settings.out.name}.new")
    with opened(settings.logs) as logs:
        for log in logs:
            log.execute("BEGIN")  # all queries see the same rows
        labels = labels_of(logs)
        metrics = metrics_of(logs, where, values)
        rows = (
            row | {"time": time_of(row["time"])} | labels.get(row["decision_id"], {"labels": 0, "good": None})
            for log in logs
            for row in rows_of(log, where, values)
        )
        try:
            count = write(new, rows, metrics)
            os.replace(new, settings.out)
        finally:
            with suppress(FileNotFoundError):
                new.unlink()
    return count


def labels_of(logs: Sequence[sqlite3.Connection]) -> dict[str, ExportFields]:
    """Return the number of labels of each decision in any log, and the share of good ones."""
    sums: dict[str, tuple[int, int]] = {}
    for log in logs:
        for id, count, good in log.execute(
            "SELECT decision_id, count(*), sum(good) FROM labels GROUP BY decision_id"
        ):
            before = sums.get(id, (0, 0))
            sums[id] = before[0] + count, before[1] + good
    return {id: {"labels": count, "good": good / count} for id, (count, good) in sums.items()}


def metrics_of(logs: Sequence[sqlite3.Connection], where: str, values: Sequence[Any]) -> list[str]:
    """Return the metrics with a score in any of the rows; damaged rows are found when they are written."""
    valid = "CASE WHEN json_valid(scores) THEN scores ELSE '{}' END"
    query = f"SELECT DISTINCT key FROM decisions, json_each({valid}) WHERE {where} AND typeof(key) = 'text'"
    return sorted({name for log in logs for (name,) in log.execute(query, values)})


def write_jsonl(path: Path, rows: Iterator[ExportFields], metrics: Sequence[str]) -> int:
    """Write objects."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(f"{json.dumps(row)}\n")
            count += 1
    return count


def write_csv(path: Path, rows: Iterator[ExportFields], metrics: Sequence[str]) -> int:
    """Write a column for each metric; what is a list or an object is JSON."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns(metrics))
        writer.writeheader()
        for row in rows:
            writer.writerow(flat(row, metrics))
            count += 1
    return count


def write_parquet(path: Path, rows: Iterator[ExportFields], metrics: Sequence[str]) -> int:
    """Write the columns of CSV; scores are numbers."""
    pyarrow, writer = arrow()
    numbers = {*NUMBERS, *metrics}
    schema = pyarrow.schema(
        [(name, pyarrow.float64() if name in numbers else pyarrow.string()) for name in columns(metrics)]
    )
    count = 0
    with path.open("wb") as opened, writer.ParquetWriter(opened, schema) as file:
        while some := [flat(row, metrics) for row in islice(rows, ROWS_PER_GROUP)]:
            file.write_table(pyarrow.Table.from_pylist(some, schema))
            count += len(some)
    return count


COLUMNS = (
    *("decision_id", "time", "request_id", "caller_id", "key_name", "policy", "decision", "reason"),
    *("because", "errors", "skipped", "models", "picture", "prompt", "prompt_digest", "audit"),
    *NUMBERS,
)


def columns(metrics: Sequence[str]) -> list[str]:
    """Return the columns of a flat table.  Raises `InputError` if a metric has the name of another one."""
    if taken := [name for name in metrics if name in COLUMNS]:
        raise InputError(
            f"the metric {taken[0]} has the name of a column: write .jsonl, where scores are apart"
        )
    return [*COLUMNS, *metrics]


def flat(row: ExportFields, metrics: Sequence[str]) -> ExportFields:
    """Return a row with a cell for each metric."""
    scores = row["scores"]
    texts = {name: json.dumps(row[name]) for name in OBJECTS if name != "scores"}
    cells = {name: row[name] for name in COLUMNS} | texts
    return cells | {metric: scores.get(metric) for metric in metrics}


WRITERS: Mapping[str, Callable[[Path, Iterator[ExportFields], Sequence[str]], int]] = {
    ".jsonl": write_jsonl,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
