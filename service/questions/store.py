"""Question sets on disk (SQLite) with the latest ones in memory."""

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Self, TypeVar

import orjson

from service.errors import NotReady
from service.questions.sets import Question, QuestionSet

T = TypeVar("T")

TABLES = """
CREATE TABLE IF NOT EXISTS sets (id TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS lookups (key TEXT PRIMARY KEY, id TEXT NOT NULL) STRICT;
"""


class SQLiteStore:
    """
    Sets by id, and ids by lookup key.

    One thread owns the connection, so writes never meet; processes may share the file (WAL).
    """

    def __init__(self, path: Path, in_memory: int) -> None:
        self._path, self._in_memory = path, in_memory
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._recent: OrderedDict[str, QuestionSet] = OrderedDict()  # by lookup key and by id
        self._connection: sqlite3.Connection

    async def __aenter__(self) -> Self:
        """Open or create the file."""
        await self._do(self._open)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the file after the last write."""
        await self._do(lambda: self._connection.close())
        self._thread.shutdown()

    async def find(self, key: str) -> QuestionSet | None:
        """The set under a lookup key."""
        query = "SELECT content FROM sets JOIN lookups USING (id) WHERE key = ?"
        return await self._cached(key, query)

    async def get(self, id: str) -> QuestionSet | None:
        """The set with that id."""
        return await self._cached(id, "SELECT content FROM sets WHERE id = ?")

    async def put(self, key: str, questions: QuestionSet) -> None:
        """Store a set under its id and a lookup key."""
        content = orjson.dumps({**asdict(questions), "provenance": questions.provenance})
        await self._do(lambda: self._write(key, questions.id, content))
        self._remember(key, questions)
        self._remember(questions.id, questions)

    def _open(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self._path, timeout=10)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(TABLES)

    def _write(self, key: str, id: str, content: bytes) -> None:
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO sets VALUES (?, ?)", (id, content))
            self._connection.execute("INSERT OR REPLACE INTO lookups VALUES (?, ?)", (key, id))

    async def _cached(self, name: str, query: str) -> QuestionSet | None:
        if name in self._recent:
            self._recent.move_to_end(name)
            return self._recent[name]
        row = await self._do(lambda: self._connection.execute(query, (name,)).fetchone())
        if row is None:
            return None
        found = from_json(row[0])
        self._remember(name, found)
        return found

    def _remember(self, name: str, questions: QuestionSet) -> None:
        self._recent[name] = questions
        while len(self._recent) > self._in_memory:
            self._recent.popitem(last=False)

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as exc:
            raise NotReady(f"the question store failed: {type(exc).__name__}") from exc


def from_json(content: bytes) -> QuestionSet:
    """A set as `put` wrote it."""
    written = orjson.loads(content)
    questions = tuple(
        Question(**{**entry, "depends_on": tuple(entry["depends_on"])}) for entry in written.pop("questions")
    )
    return QuestionSet(**written, questions=questions)
