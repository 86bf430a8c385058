"""
The log of decisions: rows are written in batches on the thread `store`, and no decision waits for them.

Its SQLite file is open for the life of a process, and locked so long.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, time
from typing import Self, TypeVar

from service.core.concurrency.cpu_threads import on_thread
from service.core.concurrency.watcher import Watcher
from service.core.errors import NotReady
from service.core.settings import NotYet, SettingsError
from service.core.settings.scoring import DecisionSettings
from service.decisions.schema import (
    END_AUDIT,
    INSERT,
    TABLES,
    VERSION,
    WITH_TIME,
    AuditRecord,
    Row,
    as_json,
    row_of,
)
from service.scoring.decide import DecisionRecord, DecisionSink

log = logging.getLogger("scoregate.decisions")

T = TypeVar("T")

WRITE_EVERY_S = 0.25  # a killed process loses the rows of this time, and of a commit
MAX_WAITING = 10_000  # rows in memory
ROWS_PER_DELETE = 1000  # rows that are deleted at once
SWEEP_S = 60.0  # seconds between two searches for old rows
WARN_S = 60.0  # seconds between two lines about rows that were lost
LABEL_S = 2.0  # storing a label may take so long
DAY_S = 86_400.0
BUSY_S = 1.0  # another process may write so long: a command that erases or labels
LOCKED_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def check_log(settings: DecisionSettings) -> None:
    """
    Open and close the file, if the settings name one, before anything slow.

    Raises:
        SettingsError: it cannot be used; `NotYet` if another process has it.
    """
    if path := settings.path:
        opened(path).close()


@dataclass(frozen=True, slots=True)
class LogFile:
    """
    An open log, which no other process can open for writing decisions.

    Attributes:
        path: absolute, without symbolic links.
        status: of the file when it was opened.
        lock: the descriptor of `NAME.lock`; the kernel releases the lock when the process ends, or is killed.
    """

    path: Path
    connection: sqlite3.Connection
    status: os.stat_result
    lock: int

    def check(self) -> None:
        """Raise `sqlite3.OperationalError` if the file at the path is not the open one any more."""
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(self.path), self.status):
                return
        raise sqlite3.OperationalError("the file was deleted or moved")

    def close(self) -> None:
        """Close the file, and release the lock."""
        try:
            self.connection.close()
        finally:
            os.close(self.lock)


class DecisionLog(DecisionSink):
    """
    A SQLite file that this process alone writes decisions to; one thread owns the connection.

    Rows that cannot be written are counted, and a line of the log says so once a minute.  While a command of
    the client holds the file, they wait.

    Args:
        unlogged: is given the number of decisions that were lost.
        clock: seconds since 1970, by which old rows are deleted.
        busy_s: see `opened`.
    """

    def __init__(
        self,
        settings: DecisionSettings,
        unlogged: Callable[[int], object],
        clock: Callable[[], float] = time,
        busy_s: float = BUSY_S,
    ) -> None:
        self._settings, self._unlogged, self._clock, self._busy_s = settings, unlogged, clock, busy_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._watcher = Watcher(self._write_on, WRITE_EVERY_S)
        self._waiting: list[DecisionRecord] = []
        self._ended: list[AuditRecord] = []
        self._file: LogFile
        # Only the store's thread uses these.
        self._again: list[Row] = []  # rows that found the file locked
        self._audits: list[AuditRecord] = []  # their decisions' rows may not be written yet
        self._lost, self._warn_at, self._sweep_at = 0, 0.0, 0.0

    async def __aenter__(self) -> Self:
        """Open and lock the file.  Raises `SettingsError`, or `NotYet` if another process has it."""
        path = self._settings.path
        assert path is not None
        try:
            self._file = await on_thread(opened, path, self._busy_s, pool=self._thread)
        except BaseException:
            self._thread.shutdown()
            raise
        await self._watcher.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Write what waits, and close the file."""
        await self._watcher.aclose()
        await on_thread(self._finish, *self._taken(), pool=self._thread)
        self._thread.shutdown()

    def record(self, records: Sequence[DecisionRecord]) -> None:
        """Implement `DecisionSink.record`."""
        room = max(0, MAX_WAITING - len(self._waiting))
        self._waiting += records[:room]
        if lost := len(records[room:]):
            self._lose(lost, "too many rows wait")

    def end_audits(self, records: Sequence[AuditRecord]) -> None:
        """
        Write the results of audits to their rows, which were handed to `record` before; return at once.

        Those that cannot be written stay selected.
        """
        self._ended += records[: max(0, MAX_WAITING - len(self._ended))]

    async def label(self, decision_id: str, good: bool, who: str | None) -> None:
        """
        Store a person's label of a decision, which may be in another process' file.

        Raises:
            NotReady: it was not stored.
        """
        try:
            async with asyncio.timeout(LABEL_S):
                await on_thread(self._label, decision_id, good, who, pool=self._thread)
        except (sqlite3.Error, TimeoutError) as exc:
            raise NotReady(f"the log of decisions failed: {type(exc).__name__}") from exc

    async def _write_on(self) -> None:
        """Write what waits, and delete a piece of what is old."""
        await on_thread(self._step, *self._taken(), pool=self._thread)

    def _taken(self) -> tuple[list[DecisionRecord], list[AuditRecord]]:
        """Return what waits, which is written now."""
        taken = self._waiting, self._ended
        self._waiting, self._ended = [], []
        return taken

    # The methods from here on run in the store's thread.

    def _step(self, records: Sequence[DecisionRecord], audits: Sequence[AuditRecord]) -> None:
        self._write(records)
        self._write_audits(audits)
        now = monotonic()
        if now >= self._sweep_at:
            # At least as many must go as come: otherwise the old rows would become more.
            limit = max(ROWS_PER_DELETE, 2 * len(records))
            if self._delete_old(limit) < limit:
                self._sweep_at = now + SWEEP_S

    def _write(self, records: Sequence[DecisionRecord], last: bool = False) -> None:
        again, self._again = self._again, []
        rows = again
        try:
            rows = [*again, *(row_of(record, self._settings.prompts) for record in records)]
            if rows:
                self._file.check()
                with self._file.connection as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(INSERT, rows)
        except Exception as exc:  # the thread goes on, whatever a row or the disk is like
            lost = len(again) + len(records)
            if is_locked(exc) and not last:
                self._again = rows[:MAX_WAITING]
                lost -= len(self._again)
            if lost:
                self._lose(lost, str(exc) if isinstance(exc, sqlite3.Error) else type(exc).__name__)

    def _write_audits(self, records: Sequence[AuditRecord]) -> None:
        self._audits = [*self._audits, *records][:MAX_WAITING]
        if not self._audits or self._again:  # the rows of their decisions must be written first
            return
        try:
            with self._file.connection as connection:
                rows = [(each.status, as_json(each.scores), each.decision_id) for each in self._audits]
                connection.executemany(END_AUDIT, rows)
        except sqlite3.Error as exc:
            if is_locked(exc):
                return
            log.warning("decisions.log: %d results of audits were not logged: %s", len(self._audits), exc)
        self._audits = []

    def _delete_old(self, limit: int) -> int:
        """Delete at most *limit* rows of each table; return the largest number that was deleted."""
        before = self._clock() - self._settings.keep_days * DAY_S
        query = "DELETE FROM {0} WHERE rowid IN (SELECT rowid FROM {0} WHERE time < ? LIMIT ?)"
        try:
            with self._file.connection as connection:
                return max(
                    connection.execute(query.format(table), (before, limit)).rowcount for table in WITH_TIME
                )
        except sqlite3.Error as exc:
            if not is_locked(exc):
                log.warning("old decisions were not deleted: %s", exc)
            return 0

    def _label(self, decision_id: str, good: bool, who: str | None) -> None:
        self._file.check()
        with self._file.connection as connection:
            insert = "INSERT INTO labels VALUES (?, ?, ?, ?)"
            connection.execute(insert, (decision_id, int(good), who, self._clock()))

    def _finish(self, records: Sequence[DecisionRecord], audits: Sequence[AuditRecord]) -> None:
        try:
            self._write(records, last=True)
            self._write_audits(audits)
        finally:
            self._file.close()

    def _lose(self, rows: int, why: str) -> None:
        """Count lost rows; also from the event loop."""
        self._unlogged(rows)
        self._lost += rows
        if (now := monotonic()) >= self._warn_at:
            lost, self._lost, self._warn_at = self._lost, 0, now + WARN_S
            log.warning("decisions.log: %d decisions were not logged: %s", lost, why)


def is_locked(exc: BaseException) -> bool:
    """Return True if another process holds the lock on the file."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF in LOCKED_CODES


def opened(path: Path, busy_s: float = BUSY_S) -> LogFile:
    """
    Open or create the file of decisions, readable by its owner alone, and lock it.

    Args:
        busy_s: the timeout of a command that waits for another process' lock.

    Raises:
        NotYet: another process holds the lock; the message names it.
        SettingsError: the file cannot be used.
    """
    try:
        path = path.resolve()  # one lock for all names of a file; SQLite takes `:memory:` for no file
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = locked(path)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            return LogFile(path, checked(path, busy_s), os.stat(path), lock)
        except BaseException:
            os.close(lock)
            raise
    except (OSError, sqlite3.Error) as exc:
        raise SettingsError(
            f"decisions.log: {path}: {exc.strerror if isinstance(exc, OSError) else exc}"
        ) from exc


def locked(path: Path) -> int:
    """Lock the file `NAME.lock` for the life of this process.  Raises `NotYet`, `OSError`."""
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(lock, 20).decode("ascii", "replace").strip()
        os.close(lock)
        raise NotYet(
            f"decisions.log: {path} is in use by the process {process or '(unknown)'}; each has its own file"
        ) from None
    with suppress(OSError):  # the disk may be full, and only people read the number
        os.truncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
    return lock


def checked(path: Path, busy_s: float) -> sqlite3.Connection:
    """Connect, and create the tables.  Raises `sqlite3.Error`, and `SettingsError` for another version."""
    connection = sqlite3.connect(path, timeout=busy_s, check_same_thread=False)
    try:
        # A power cut may take the last rows, and never the file.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise SettingsError(
                f"decisions.log: {path} has the tables of version {version}, and this service {VERSION}"
            )
        connection.execute("PRAGMA journal_mode = WAL")
        if not version:
            connection.executescript(f"BEGIN IMMEDIATE; {TABLES} COMMIT;")
        connection.execute("SELECT decision_id, audit FROM decisions LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
