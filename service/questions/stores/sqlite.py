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

T = TypeVar("T")

TABLES = """
CREATE TABLE IF NOT EXISTS sets (id TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS lookups (key TEXT PRIMARY KEY, id TEXT NOT NULL) STRICT;
"""


class SQLiteStore(Store):
    """A file; one thread owns the connection, so writes never meet, and processes may share it (WAL)."""

    def __init__(self, path: Path, in_memory: int) -> None:
        super().__init__(in_memory)
        self._path = path
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._connection: sqlite3.Connection

    async def __aenter__(self) -> Self:
        """Open or create the file."""
        await self._do(self._open)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the file after the last write."""
        await self._do(lambda: self._connection.close())
        self._thread.shutdown()

    async def _find(self, key: str) -> QuestionSet | None:
        return await self._do(lambda: self._read("sets JOIN lookups USING (id) WHERE key = ?", key))

    async def _get(self, id: str) -> QuestionSet | None:
        return await self._do(lambda: self._read("sets WHERE id = ?", id))

    async def _put(self, key: str, questions: QuestionSet) -> QuestionSet:
        return await self._do(lambda: self._write(key, questions))

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self._path, timeout=10)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(TABLES)

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
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as exc:
            raise NotReady(f"the question store failed: {type(exc).__name__}") from exc
