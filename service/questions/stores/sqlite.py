"""Question sets on disk (SQLite)."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from service.errors import NotReady
from service.questions.sets import QuestionSet
from service.questions.stores.contract import Store, from_json, to_json
from service.questions.stores.file import opened
from service.settings import SettingsError

T = TypeVar("T")

TIMEOUT_S = 2.0  # of a command, with its wait for those before it and for other processes


class SQLiteStore(Store):
    """
    A file; one thread owns the connection, so writes never meet, and processes may share it (WAL).

    Args:
        timeout_s: of one command; other processes may hold the file locked for half of it.
    """

    def __init__(self, path: Path, in_memory: int, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(in_memory)
        self._path, self._timeout_s = path, timeout_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._connection: sqlite3.Connection

    async def __aenter__(self) -> Self:
        """Open or create the file.  Raises `SettingsError`."""
        try:
            self._connection = await self._on_thread(lambda: opened(self._path, self._timeout_s / 2))
        except (OSError, sqlite3.Error) as exc:
            self._thread.shutdown()
            raise SettingsError(f"cache.questions: {self._path}: {exc}") from exc
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the file after the last write."""
        await self._on_thread(self._connection.close)
        self._thread.shutdown()

    async def _find(self, key: str) -> QuestionSet | None:
        return await self._do(lambda: self._read("sets JOIN lookups USING (id) WHERE key = ?", key))

    async def _get(self, id: str) -> QuestionSet | None:
        return await self._do(lambda: self._read("sets WHERE id = ?", id))

    async def _put(self, key: str, questions: QuestionSet) -> QuestionSet:
        return await self._do(lambda: self._write(key, questions))

    def _read(self, where: str, name: str) -> QuestionSet | None:
        row = self._connection.execute(f"SELECT content, id FROM {where}", (name,)).fetchone()
        return from_json(*row) if row else None

    def _write(self, key: str, questions: QuestionSet) -> QuestionSet:
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")  # no other process writes from here on
            if in_force := self._read("sets JOIN lookups USING (id) WHERE key = ?", key):
                return in_force
            self._connection.execute(
                "INSERT OR REPLACE INTO sets VALUES (?, ?)", (questions.id, to_json(questions))
            )
            self._connection.execute("INSERT OR REPLACE INTO lookups VALUES (?, ?)", (key, questions.id))
        return questions

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._on_thread(work)
        except (sqlite3.Error, TimeoutError) as exc:
            raise NotReady(f"the question store failed: {type(exc).__name__}") from exc

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
