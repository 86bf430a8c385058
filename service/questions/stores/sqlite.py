"""Question sets in a SQLite file, which is created if it is missing, and replaced if it is corrupt."""

import asyncio
import fcntl
import logging
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Self, TypeVar

from service.core.concurrency.cpu_threads import on_thread
from service.core.errors import NotReady
from service.core.settings import NotYet, SettingsError
from service.questions.sets import ID, QuestionSet, from_json, to_json
from service.questions.stores.contract import LEASE_S, LeaseLost, Store

T = TypeVar("T")

log = logging.getLogger("scoregate.questions")

TABLES = """
CREATE TABLE IF NOT EXISTS sets (id TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS lookups (key TEXT PRIMARY KEY, id TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS leases (key TEXT PRIMARY KEY, token TEXT NOT NULL, until REAL NOT NULL) STRICT;
"""
BROKEN_FILE_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
LOCKED_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
START_S = 10.0  # processes that start together wait for each other
SYNCHRONOUS = "NORMAL"  # a power cut may take the last sets, and never the file
TIMEOUT_S = 2.0  # a command may take so long, with its wait for earlier ones and for other processes
SETS_PER_QUERY = 256  # sets per query
BY_ID = "SELECT content, id FROM sets WHERE id = ?"
BY_KEY = "SELECT content, id FROM sets JOIN lookups USING (id) WHERE key = ?"


class SQLiteStore(Store):
    """
    A SQLite file; one thread owns the connection, and processes may share the file (WAL).

    Args:
        timeout_s: of one command; other processes may hold the lock for half of it.
        now: a clock in seconds, shared by all processes that use the file.
        start_s: other processes may hold the lock so long while the file is opened.
    """

    def __init__(
        self,
        path: Path,
        in_memory: int,
        timeout_s: float = TIMEOUT_S,
        now: Callable[[], float] = time.time,
        start_s: float = START_S,
    ) -> None:
        super().__init__(in_memory)
        self._path, self._timeout_s, self._now, self._start_s = path, timeout_s, now, start_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._connection: sqlite3.Connection

    async def __aenter__(self) -> Self:
        """Open or create the file.  Raises `SettingsError`, or `NotYet` if another process holds the lock."""
        try:
            self._connection = await on_thread(
                usable, self._path, self._timeout_s / 2, self._start_s, pool=self._thread
            )
        except SettingsError:
            self._thread.shutdown()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the file after the last write."""
        await on_thread(self._connection.close, pool=self._thread)
        self._thread.shutdown()

    async def claim(self, key: str) -> str | None:
        """Implement `Store.claim`."""
        return await self._do(self._claim, key)

    async def renew(self, key: str, token: str) -> None:
        """Implement `Store.renew`."""
        await self._do(self._renew, key, token)

    async def release(self, key: str, token: str) -> None:
        """Implement `Store.release`."""
        await self._do(self._release, key, token)

    async def sets(self) -> AsyncIterator[tuple[str, QuestionSet | None]]:
        """Implement `Store.sets`."""
        last = ""
        while rows := await self._do(self._page, last):
            for id, content in rows:
                yield id, from_json(content, id)
            last = id

    async def _find(self, *names: str) -> QuestionSet | None:
        return await self._do(self._read, *names)

    async def _put(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet:
        return await self._do(self._write, key, questions, token)

    async def _do(self, work: Callable[..., T], *args: object) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await on_thread(work, *args, pool=self._thread)
        except (sqlite3.Error, TimeoutError) as exc:
            raise NotReady(f"the question store failed: {type(exc).__name__}") from exc

    # The methods from here on run in the store's thread.

    @contextmanager
    def _writing(self) -> Iterator[float]:
        """
        Hold the lock on the file while the context is open, and return the time from which it is held.

        By an earlier time, leases that other processes took while this one waited would seem too long.
        """
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield self._now()

    def _claim(self, key: str) -> str | None:
        token = secrets.token_hex()
        with self._writing() as now:
            # A lease that lasts too long was written before the clock was set back.
            over = "DELETE FROM leases WHERE until NOT BETWEEN ? AND ?"
            self._connection.execute(over, (now, now + LEASE_S))
            begin = "INSERT OR IGNORE INTO leases VALUES (?, ?, ?)"
            begun = self._connection.execute(begin, (key, token, now + LEASE_S)).rowcount
        return token if begun else None

    def _renew(self, key: str, token: str) -> None:
        with self._writing() as now:
            extend = "UPDATE leases SET until = ? WHERE key = ? AND token = ?"
            self._connection.execute(extend, (now + LEASE_S, key, token))

    def _release(self, key: str, token: str) -> None:
        with self._writing():
            self._connection.execute("DELETE FROM leases WHERE key = ? AND token = ?", (key, token))

    def _page(self, last: str) -> list[tuple[str, bytes]]:
        query = f"SELECT id, content FROM sets WHERE id > ? ORDER BY id LIMIT {SETS_PER_QUERY}"
        return self._connection.execute(query, (last,)).fetchall()

    def _read(self, *names: str) -> QuestionSet | None:
        for name in names:
            query = BY_ID if name.startswith(ID) else BY_KEY
            row = self._connection.execute(query, (name,)).fetchone()
            if row and (found := from_json(*row)):
                return found
        return None

    def _write(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet:
        with self._writing():
            lease = self._connection.execute("SELECT token FROM leases WHERE key = ?", (key,)).fetchone()
            if token is not None and lease != (token,):
                raise LeaseLost
            if self._read(questions.id) is None:
                self._connection.execute(
                    "INSERT OR REPLACE INTO sets VALUES (?, ?)", (questions.id, to_json(questions))
                )
            if in_force := self._read(key):
                return in_force
            self._connection.execute("INSERT OR REPLACE INTO lookups VALUES (?, ?)", (key, questions.id))
        return questions


def opened(path: Path, busy_s: float, start_s: float = START_S) -> sqlite3.Connection:
    """
    Connect to a file that can be read and written; it is created if it is missing.

    A corrupt file is moved to `NAME.corrupt-TIME` with a log message, and a new one is created, since
    question sets can be written again.

    Args:
        busy_s: the timeout of a command that waits for another process' lock.
        start_s: that of the first commands.

    Raises:
        OSError, sqlite3.Error: it cannot be created, read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(path, fcntl.LOCK_SH):  # no process may move the file meanwhile
            connection = checked(path, start_s)
    except sqlite3.DatabaseError as exc:
        if not is_broken(exc):
            raise
        with locked(path, fcntl.LOCK_EX):
            connection = replaced(path, start_s)
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * busy_s)}")
    return connection


def usable(path: Path, busy_s: float, start_s: float = START_S) -> sqlite3.Connection:
    """Connect as `opened`.  Raises `SettingsError`, or `NotYet` if another process holds the lock."""
    try:
        return opened(path, busy_s, start_s)
    except (OSError, sqlite3.Error) as exc:
        kind = NotYet if getattr(exc, "sqlite_errorcode", 0) & 0xFF in LOCKED_CODES else SettingsError
        raise kind(f"cache.questions: {path}: {exc}") from exc


def replaced(path: Path, start_s: float) -> sqlite3.Connection:
    """Connect to the file that another process has created in the meantime, or to a new one."""
    try:
        return checked(path, start_s)
    except sqlite3.DatabaseError as exc:
        if not is_broken(exc):
            raise
        aside = f"{path.name}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(path.with_name(aside + suffix))
        log.error("the question store %s is corrupt: moved to %s, and a new one begun", path, aside)
    return checked(path, start_s)


def checked(path: Path, start_s: float) -> sqlite3.Connection:
    """Connect, and test reading and writing.  Raises `sqlite3.Error`."""
    connection = sqlite3.connect(path, timeout=start_s)
    try:
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN IMMEDIATE; {TABLES} COMMIT;")
        connection.execute("SELECT content, id FROM sets JOIN lookups USING (id) WHERE key = ''")
        [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise Corrupt(found)
    except BaseException:
        connection.close()
        raise
    return connection


class Corrupt(sqlite3.DatabaseError):
    """A fault found by SQLite's own check."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def is_broken(exc: sqlite3.Error) -> bool:
    """Return True if the file is corrupt, rather than missing or locked."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF in BROKEN_FILE_CODES


@contextmanager
def locked(path: Path, kind: int) -> Iterator[None]:
    """Hold the lock on the file's name: shared to open the file, exclusive to replace it."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, kind)
        yield
