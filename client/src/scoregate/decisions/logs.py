"""Logs of decisions: SQLite files of one service or of several, which may be running."""

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

from scoregate.errors import InputError
from scoregate.records import check_regular, strict_json
from scoregate.results import is_number
from scoregate.settings import Setting, SettingError
from scoregate.text import meant_file

VERSION = 1  # the service writes tables of this version
BUSY_S = 30.0  # a service that writes is done in milliseconds
DECISIONS = ("accept", "review", "reject")
MAX_SHOWN = 80  # characters of a cell in an error


def is_text(entry: Any) -> bool:
    """Return True for a text."""
    return isinstance(entry, str)


# The columns that are JSON: each an object or a list, and what its entries are.
OBJECTS: Mapping[str, tuple[type, Callable[[Any], bool]]] = {
    "scores": (dict, is_number),
    "errors": (dict, is_text),
    "skipped": (list, is_text),
    "models": (dict, is_text),
}


def moment(text: str) -> float:
    """Return the seconds since 1970 of a date or a time; UTC, unless it has an offset."""
    try:
        parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise SettingError("a date or a time, such as 2026-11-28 or 2026-11-28T09:30Z") from None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)).timestamp()


@dataclass(frozen=True, kw_only=True)
class Logs:
    """The settings of a command that takes logs."""

    logs: Annotated[
        Sequence[Path],
        Setting("files of decisions, such as decisions-*.sqlite3", positional=True, nargs="+", metavar="LOG"),
    ]


@dataclass(frozen=True, kw_only=True)
class Selection(Logs):
    """The settings of a command that takes some of the rows."""

    since: Annotated[
        float | None, Setting("rows from this date or time on (UTC)", parse=moment, metavar="TIME")
    ] = None
    policy: Annotated[str | None, Setting("rows of this policy: its name, or its id", metavar="POLICY")] = (
        None
    )

    def where(self) -> tuple[str, list[Any]]:
        """Return the condition in SQL, with its values."""
        terms, values = ["TRUE"], list[Any]()
        if self.since is not None:
            terms.append("time >= ?")
            values.append(self.since)
        if self.policy is not None:
            terms.append("(policy = ? OR substr(policy, 1, ?) = ?)")  # `show@` and the digest
            values += [self.policy, len(self.policy) + 1, f"{self.policy}@"]
        return " AND ".join(terms), values


@contextmanager
def opened(paths: Iterable[Path], busy_s: float = BUSY_S) -> Iterator[list[sqlite3.Connection]]:
    """
    Open files of decisions, each once.

    Args:
        busy_s: a command waits so long for a service that writes.

    Raises:
        InputError: one is missing or no log; also for errors of SQLite while the files are open.
    """
    with ExitStack() as stack:
        try:
            yield [connected(path, stack, busy_s) for path in dict.fromkeys(path.resolve() for path in paths)]
        except sqlite3.Error as exc:
            raise InputError(f"a log of decisions: {exc}") from exc


def connected(path: Path, stack: ExitStack, busy_s: float) -> sqlite3.Connection:
    """Connect to one file until the stack ends."""
    if not path.is_file():
        raise InputError(f"{path}: there is no such file{meant_file(path)}")
    check_regular(path)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=busy_s, isolation_level=None)
    stack.callback(connection.close)
    try:
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        [version] = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as exc:
        raise InputError(f"{path}: {exc}") from exc
    if version != VERSION:
        raise InputError(f"{path}: is no log of decisions, or of another version")
    connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the lock on a file, and commit at the end unless there is an exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def rows_of(
    log: sqlite3.Connection, where: str, values: Sequence[Any], columns: Collection[str] = tuple(OBJECTS)
) -> Iterator[dict[str, Any]]:
    """
    Yield the rows of the table of decisions that a condition selects, the oldest first.

    Args:
        where, values: the condition in SQL, as of `Selection.where`.
        columns: those of `OBJECTS` whose JSON is parsed; the others stay text.

    Raises:
        InputError: a row is damaged; the message names the file and the decision.
    """
    file = log.execute("PRAGMA database_list").fetchone()["file"]
    try:
        for row in log.execute(f"SELECT * FROM decisions WHERE {where} ORDER BY time", values):
            yield checked(row, columns, f"{file}, decision {row['decision_id']}")
    except sqlite3.Error as exc:
        raise InputError(f"{file}: {exc}") from exc


def checked(row: sqlite3.Row, columns: Collection[str], place: str) -> dict[str, Any]:
    """Return a row with the JSON of *columns* parsed.  Raises `InputError`, which begins with *place*."""
    values = dict(row)
    if values["decision"] not in DECISIONS:
        raise InputError(f"{place}: its decision is {values['decision']!r}")
    try:
        time_of(values["time"])
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{place}: its time is {values['time']!r}") from None
    for name in columns:
        try:
            values[name] = strict_json(values[name])
        except (ValueError, RecursionError):
            raise InputError(f"{place}: its {name} are not JSON") from None
        kind, is_entry = OBJECTS[name]
        entries = values[name].values() if isinstance(values[name], dict) else values[name]
        if not isinstance(values[name], kind) or not all(map(is_entry, entries)):
            raise InputError(f"{place}: its {name} are {row[name][:MAX_SHOWN]}")
    return values


def time_of(seconds: float) -> str:
    """Return a time as text.  Raises `ValueError`, `OverflowError` or `OSError` if it is none."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds")
