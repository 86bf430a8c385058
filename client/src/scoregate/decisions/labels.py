"""Labels of decisions by people, and the rows that are drawn for them."""

import csv
import random
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

from scoregate.decisions.logs import Logs, Selection, opened, writing
from scoregate.errors import InputError, NoColumnError
from scoregate.records import records, truth
from scoregate.settings import Setting, count, whole

IDS = ("decision_id", "caller_id")
HEADS = ("decision_id", "caller_id", "policy", "decision", "picture", "prompt", "good", "who")


@dataclass(frozen=True, kw_only=True)
class LabelSettings(Logs):
    """Labels of a table."""

    labels: Annotated[
        Path,
        Setting(
            "a .csv, .jsonl or .parquet with decision_id or caller_id, good (0 or 1), and who,"
            " which is optional",
            positional=True,
            metavar="LABELS",
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class SampleSettings(Selection):
    """How many rows are drawn, and where to."""

    n: Annotated[int, Setting("rows to draw", ("-n",), parse=whole, metavar="N")]
    out: Annotated[Path, Setting("the table for labels, a .csv", ("-o", "--out"), metavar="FILE")]
    seed: Annotated[int, Setting("of the drawing (default 0)", parse=count, metavar="N")] = 0


class Labelled(NamedTuple):
    """What was stored: labels of rows, rows of the table without a label, and ids that no log has."""

    stored: int
    empty: int
    unknown: Sequence[str]


class Label(NamedTuple):
    """A label of the decisions with an id in a column."""

    column: str
    id: str
    good: bool
    who: str | None


def label(settings: LabelSettings) -> Labelled:
    """
    Store the labels of a table; one by a caller's id is of all decisions with that id.

    Nothing is stored if a row is not valid.

    Raises:
        InputError: a log or a row is not valid.
    """
    found = [label_of(record.number, record.values, record.fault) for record in records(settings.labels)]
    labels = [each for each in found if each is not None]
    stored, known = 0, set[Label]()
    with opened(settings.logs) as logs:
        for log in logs:
            rows = []
            for each in labels:
                query = f"SELECT decision_id FROM decisions WHERE {each.column} = ?"
                ids = [id for (id,) in log.execute(query, (each.id,))]
                known |= {each} if ids else set()
                rows += [(id, int(each.good), each.who, time.time()) for id in ids]
            with writing(log):
                log.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)
            stored += len(rows)
    unknown = list(dict.fromkeys(each.id for each in labels if each not in known))
    return Labelled(stored, len(found) - len(labels), unknown)


def label_of(number: int, values: Mapping[str, Any], fault: str) -> Label | None:
    """Return the label in a row; None for a row that has none yet.  Raises `InputError`."""
    if fault:
        raise InputError(f"row {number}: {fault}")
    if "good" not in values:
        raise NoColumnError(f"row {number}", "good", values)
    if str(values["good"] if values["good"] is not None else "").strip() == "":
        return None
    try:
        good = truth(values["good"])
    except ValueError as exc:
        raise InputError(f"row {number}, column good: {exc}") from exc
    for column in IDS:
        if values.get(column):
            return Label(column, str(values[column]), good, str(values.get("who") or "") or None)
    raise InputError(f"row {number}: it has neither a decision_id nor a caller_id")


def sample(settings: SampleSettings) -> dict[str, tuple[int, int]]:
    """
    Draw rows for labels, stratified by decision, and write them to a table.

    Each decision has as many rows as the others, or all that it has.  Within a decision each row has the same
    probability, which is stored with the row in its log, under the id of the drawing.

    Returns:
        The number of rows drawn and of all rows, by decision.

    Raises:
        InputError: no row is selected, or a log or the name of the table is not valid.
    """
    if settings.out.suffix.lower() != ".csv":
        raise InputError(f"{settings.out}: the name must end in .csv")
    where, values = settings.where()
    with opened(settings.logs) as logs:
        strata: dict[str, list[tuple[int, str]]] = {}
        for place, log in enumerate(logs):
            query = f"SELECT decision, decision_id FROM decisions WHERE {where} ORDER BY time, decision_id"
            for decision, id in log.execute(query, values):
                strata.setdefault(decision, []).append((place, id))
        if not strata:
            raise InputError("no row is selected")
        sizes = allotted({decision: len(rows) for decision, rows in strata.items()}, settings.n)
        chance = random.Random(settings.seed)
        drawn = {
            decision: chance.sample(strata[decision], size)
            for decision, size in sorted(sizes.items())
            if size
        }
        shares = {decision: sizes[decision] / len(strata[decision]) for decision in drawn}
        rows = [row_of(logs[place], id) for each in drawn.values() for place, id in each]
        chance.shuffle(rows)  # people see them without order
        with settings.out.open("x", encoding="utf-8", newline="") as file:  # it may hold labels already
            writer = csv.writer(file)
            writer.writerow(HEADS)
            writer.writerows(rows)
        draw = uuid4().hex
        for place, log in enumerate(logs):
            with writing(log):
                log.executemany(
                    "INSERT INTO samples VALUES (?, ?, ?, ?, ?)",
                    [
                        (draw, id, decision, shares[decision], time.time())
                        for decision, each in drawn.items()
                        for where_it_is, id in each
                        if where_it_is == place
                    ],
                )
    return {decision: (sizes[decision], len(rows)) for decision, rows in sorted(strata.items())}


def row_of(log: sqlite3.Connection, id: str) -> list[Any]:
    """Return the row of the table for labels."""
    query = f"SELECT {', '.join(HEADS[:-2])} FROM decisions WHERE decision_id = ?"
    return [*(log.execute(query, (id,)).fetchone() or [id]), "", ""]


def allotted(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """
    Return how many of *n* rows each stratum gets: the same number, or all of a smaller one.

    Args:
        sizes: the number of rows of each stratum.
    """
    left, given = n, dict[str, int]()
    for place, name in enumerate(sorted(sizes, key=lambda name: (sizes[name], name))):
        given[name] = min(sizes[name], left // (len(sizes) - place))
        left -= given[name]
    return given
