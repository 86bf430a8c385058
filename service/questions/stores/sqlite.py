"""Question sets in a SQLite file."""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from service.core.concurrency.threads import on_thread
from service.core.errors import NotReady
from service.core.settings import SettingsError
from service.questions.sets import QuestionSet
from service.questions.stores.contract import LEASE_S, LeaseLost, Store, from_json, to_json
from service.questions.stores.file import usable

T = TypeVar("T")

TIMEOUT_S = 2.0  # of a command, including its wait for earlier ones and for other processes
PAGE = 256  # sets per query
IN_FORCE = "sets JOIN lookups USING (id) WHERE key = ?"


class SQLiteStore(Store):
    """
    A SQLite file; one thread owns the connection, and processes may share the file (WAL).

    Args:
        timeout_s: of one command; other processes may hold the lock for half of it.
        now: a clock in seconds, shared by all processes that use the file.
    """

    def __init__(
        self,
        path: Path,
        in_memory: int,
        timeout_s: float = TIMEOUT_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(in_memory)
        self._path, self._timeout_s, self._now = path, timeout_s, now
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._connection: sqlite3.Connection

    async def __aenter__(self) -> Self:
        """Open or create the file.  Raises `SettingsError`, or `NotYet` if another process holds the lock."""
        try:
            self._connection = await self._on_thread(lambda: usable(self._path, self._timeout_s / 2))
        except SettingsError:
            self._thread.shutdown()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the file after the last write."""
        await self._on_thread(self._connection.close)
        self._thread.shutdown()

    async def claim(self, key: str) -> str | None:
        """Implement `Store.claim`."""
        return await self._do(lambda: self._claim(key))

    async def renew(self, key: str, token: str) -> None:
        """Implement `Store.renew`."""
        await self._do(lambda: self._renew(key, token))

    async def release(self, key: str, token: str) -> None:
        """Implement `Store.release`."""
        await self._do(lambda: self._release(key, token))

    async def sets(self) -> AsyncIterator[tuple[str, QuestionSet | None]]:
        """Implement `Store.sets`."""
        last, query = "", f"SELECT id, content FROM sets WHERE id > ? ORDER BY id LIMIT {PAGE}"
        while rows := await self._do(partial(self._rows, query, last)):
            for id, content in rows:
                yield id, from_json(content, id)
            last = id

    async def _find(self, *keys: str) -> QuestionSet | None:
        return await self._do(lambda: next(filter(None, (self._read(IN_FORCE, key) for key in keys)), None))

    async def _get(self, id: str) -> QuestionSet | None:
        return await self._do(lambda: self._read("sets WHERE id = ?", id))

    async def _put(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet:
        return await self._do(lambda: self._write(key, questions, token))

    def _rows(self, query: str, *values: str) -> list[tuple[str, bytes]]:
        return self._connection.execute(query, values).fetchall()

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

    def _read(self, where: str, name: str) -> QuestionSet | None:
        row = self._connection.execute(f"SELECT content, id FROM {where}", (name,)).fetchone()
        return from_json(*row) if row else None

    def _write(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet:
        with self._writing():
            lease = self._connection.execute("SELECT token FROM leases WHERE key = ?", (key,)).fetchone()
            if token is not None and lease != (token,):
                raise LeaseLost
            if self._read("sets WHERE id = ?", questions.id) is None:
                self._connection.execute(
                    "INSERT OR REPLACE INTO sets VALUES (?, ?)", (questions.id, to_json(questions))
                )
            if in_force := self._read(IN_FORCE, key):
                return in_force
            self._connection.execute("INSERT OR REPLACE INTO lookups VALUES (?, ?)", (key, questions.id))
        return questions

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._on_thread(work)
        except (sqlite3.Error, TimeoutError) as exc:
            raise NotReady(f"the question store failed: {type(exc).__name__}") from exc

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await on_thread(work, pool=self._thread)
