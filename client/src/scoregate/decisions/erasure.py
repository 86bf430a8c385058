"""Rows of a person, a picture or a decision, erased from logs."""

import sqlite3
from dataclasses import dataclass
from typing import Annotated

from scoregate.decisions.logs import BUSY_S, Logs, opened, writing
from scoregate.errors import InputError, NoResultError, named
from scoregate.settings import Setting

ROWS_PER_DELETE = 1000  # rows that are deleted while the file is locked


@dataclass(frozen=True, kw_only=True)
class EraseSettings(Logs):
    """Whose rows are erased: exactly one of the three is given."""

    id: Annotated[str | None, Setting("the decision with this id", metavar="ID", excludes="whose")] = None
    image: Annotated[
        str | None,
        Setting(
            "decisions about the picture with this SHA-256",
            ("--picture",),
            metavar="DIGEST",
            excludes="whose",
        ),
    ] = None
    caller: Annotated[
        str | None, Setting("decisions with this id of the caller", metavar="ID", excludes="whose")
    ] = None


def erase(settings: EraseSettings, busy_s: float = BUSY_S) -> int:
    """
    Erase decisions with their labels and samples, and return the number of decisions.

    The content is overwritten in the files, and removed from their write-ahead logs.

    Args:
        busy_s: see `opened`.

    Raises:
        InputError: none or several of the three are given, or a log is not valid.
        NoResultError: the rows are deleted, but another process kept a write-ahead log open.
    """
    given = {"decision_id": settings.id, "picture": settings.image, "caller_id": settings.caller}
    chosen = [(column, value) for column, value in given.items() if value is not None]
    if len(chosen) != 1:
        raise InputError(f"give one of {named('id')}, {named('image')}, {named('caller')}")
    [(column, value)] = chosen
    value = value.lower() if column == "picture" else value
    with opened(settings.logs, busy_s) as logs:
        found = [id for log in logs for id in erase_decisions(log, column, value)]
        marked = {*found, value} if column == "decision_id" else {*found}  # its label may be in another file
        emptied = [erase_marks(log, marked) for log in logs]
    if not all(emptied):
        raise NoResultError(
            f"{len(found)} decisions erased; another process still reads the old content: run this again"
        )
    return len(found)


def erase_decisions(log: sqlite3.Connection, column: str, value: str) -> list[str]:
    """Delete the rows with a value in a column, in pieces, and return their ids."""
    query = f"SELECT decision_id FROM decisions WHERE {column} = ?"
    ids = [id for (id,) in log.execute(query, (value,))]
    for start in range(0, len(ids), ROWS_PER_DELETE):
        with writing(log):
            log.executemany(
                "DELETE FROM decisions WHERE decision_id = ?",
                [(id,) for id in ids[start : start + ROWS_PER_DELETE]],
            )
    return ids


def erase_marks(log: sqlite3.Connection, ids: set[str]) -> bool:
    """Delete labels and samples of decisions; return whether the write-ahead log could be emptied."""
    with writing(log):
        for table in ("labels", "samples"):
            log.executemany(f"DELETE FROM {table} WHERE decision_id = ?", [(id,) for id in ids])
    [busy, _, _] = log.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy
