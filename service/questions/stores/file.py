"""The SQLite file of question sets: opened, checked, and replaced if it is corrupt."""

import fcntl
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from service.core.settings import NotYet, SettingsError

log = logging.getLogger("scoregate.questions")

TABLES = """
CREATE TABLE IF NOT EXISTS sets (id TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS lookups (key TEXT PRIMARY KEY, id TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS leases (key TEXT PRIMARY KEY, token TEXT NOT NULL, until REAL NOT NULL) STRICT;
"""
BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
START_S = 10.0  # processes that start together wait for each other
SYNCHRONOUS = "NORMAL"  # a power cut may take the last sets, and never the file


def opened(path: Path, busy_s: float) -> sqlite3.Connection:
    """
    Connect to a file that can be read and written; it is created if it is missing.

    A corrupt file is moved to `NAME.corrupt-TIME` with a log message, and a new one is created, since
    question sets can be written again.

    Args:
        busy_s: the timeout of a command that waits for another process' lock.

    Raises:
        OSError, sqlite3.Error: it cannot be created, read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(path, fcntl.LOCK_SH):  # so that no process moves the file meanwhile
            connection = checked(path)
    except sqlite3.DatabaseError as exc:
        if not is_broken(exc):
            raise
        with locked(path, fcntl.LOCK_EX):
            connection = replaced(path)
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * busy_s)}")
    return connection


def usable(path: Path, busy_s: float) -> sqlite3.Connection:
    """Connect as `opened`.  Raises `SettingsError`, or `NotYet` if another process holds the lock."""
    try:
        return opened(path, busy_s)
    except (OSError, sqlite3.Error) as exc:
        kind = NotYet if getattr(exc, "sqlite_errorcode", 0) & 0xFF in LOCKED else SettingsError
        raise kind(f"cache.questions: {path}: {exc}") from exc


def replaced(path: Path) -> sqlite3.Connection:
    """Connect to the file that another process has created in the meantime, or to a new one."""
    try:
        return checked(path)
    except sqlite3.DatabaseError as exc:
        if not is_broken(exc):
            raise
        aside = f"{path.name}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        for suffix in ("", "-wal", "-shm"):
            part = path.with_name(path.name + suffix)
            if part.exists():
                part.rename(path.with_name(aside + suffix))
        log.error("the question store %s is corrupt: moved to %s, and a new one begun", path, aside)
    return checked(path)


def checked(path: Path) -> sqlite3.Connection:
    """Connect, and test reading and writing.  Raises `sqlite3.Error`."""
    connection = sqlite3.connect(path, timeout=START_S)
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
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF in BROKEN


@contextmanager
def locked(path: Path, kind: int) -> Iterator[None]:
    """Hold the lock on the file's name: shared to open the file, exclusive to replace it."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, kind)
        yield
