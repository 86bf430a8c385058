"""The SQLite file of question sets: opened, checked, and moved aside where it is broken."""

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
    A connection to a file that can be read and written, made where there is none.

    A broken file is moved to `NAME.corrupt-TIME`, which the log says, and a new one is begun: question sets
    can be written anew.

    Args:
        busy_s: how long a command waits for another process' lock, in seconds.

    Raises:
        OSError, sqlite3.Error: it cannot be made, read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(path, fcntl.LOCK_SH):  # nobody moves the file while it is opened
            connection = checked(path)
    except sqlite3.DatabaseError as exc:
        if not is_broken(exc):
            raise
        with locked(path, fcntl.LOCK_EX):
            connection = replaced(path)
    connection.execute(f"PRAGMA busy_timeout = {round(1000 * busy_s)}")
    return connection


def usable(path: Path, busy_s: float) -> sqlite3.Connection:
    """The same.  Raises `SettingsError`, or `NotYet` where another process keeps the file locked."""
    try:
        return opened(path, busy_s)
    except (OSError, sqlite3.Error) as exc:
        kind = NotYet if getattr(exc, "sqlite_errorcode", 0) & 0xFF in LOCKED else SettingsError
        raise kind(f"cache.questions: {path}: {exc}") from exc


def replaced(path: Path) -> sqlite3.Connection:
    """A connection to the file that another process has begun in the meantime, or to a new one."""
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
    """A connection that was read and written once.  Raises `sqlite3.Error`."""
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
    """What SQLite's own check found."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def is_broken(exc: sqlite3.Error) -> bool:
    """Whether the file is at fault, and not its place or another process."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF in BROKEN


@contextmanager
def locked(path: Path, kind: int) -> Iterator[None]:
    """Hold the lock on the file's name: shared by all who open it, or for one who replaces it."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, kind)
        yield
