"""The SQLite file of decisions: opened for the life of a process, and locked so long."""

import fcntl
import os
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from service.core.settings import NotYet, SettingsError
from service.decisions.schema import TABLES, VERSION

BUSY_S = 1.0  # another process may write so long: a command that erases or labels


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
