"""The contract of question stores, with a cache of recent sets in memory."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import orjson

from service.questions.sets import Question, QuestionSet

LEASE_S = 5.0  # until a lease expires, unless it is renewed


class LeaseLost(Exception):
    """A set was not stored, since another process may be writing one."""


class Store(ABC):
    """
    Sets by id, and ids by lookup key.

    Processes may share the backend.  The first set stored under a lookup key is in force for all of them, so
    that a prompt has one set everywhere.  Stored content that is not a set counts as missing, and the next
    set replaces it.

    A lease ensures that one process writes the set of a lookup key.  It expires soon after its holder ends,
    and a holder that was too slow cannot store anything with its token.

    All methods raise `NotReady` if the backend fails.
    """

    def __init__(self, in_memory: int) -> None:
        self._in_memory = in_memory
        self._recent: OrderedDict[str, QuestionSet] = OrderedDict()  # by lookup key and by id

    async def find(self, *keys: str) -> QuestionSet | None:
        """Return the set under the first lookup key that has one; sets in memory come first."""
        return await self._cached(keys, self._find)

    async def get(self, id: str) -> QuestionSet | None:
        """Return the set with that id."""
        return await self._cached([id], self._get)

    async def put(self, key: str, questions: QuestionSet, token: str | None = None) -> QuestionSet:
        """
        Store a set under its id and a lookup key, and return the set in force, which may be an earlier one.

        Raises:
            LeaseLost: *token* is not that of the lease on *key*.  Nothing was stored.
        """
        in_force = await self._put(key, questions, token)
        self._remember(key, in_force)
        self._remember(in_force.id, in_force)
        return in_force

    @abstractmethod
    async def claim(self, key: str) -> str | None:
        """Return the token of a new lease on a lookup key, for `LEASE_S`; None if it is taken."""

    @abstractmethod
    async def renew(self, key: str, token: str) -> None:
        """Extend the lease to `LEASE_S` from now, if *token* is still valid."""

    @abstractmethod
    async def release(self, key: str, token: str) -> None:
        """End the lease, if *token* is still valid."""

    @abstractmethod
    def sets(self) -> AsyncIterator[tuple[str, QuestionSet | None]]:
        """Yield every stored id with its set, or with None if the content is not a set."""

    @abstractmethod
    async def _find(self, *keys: str) -> QuestionSet | None: ...

    @abstractmethod
    async def _get(self, id: str) -> QuestionSet | None: ...

    @abstractmethod
    async def _put(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet: ...

    async def _cached(
        self, names: Sequence[str], read: Callable[..., Awaitable[QuestionSet | None]]
    ) -> QuestionSet | None:
        if found := self._known(names):
            return found
        if found := await read(*names):
            self._remember(names[0], found)
            return found
        return self._known(names)  # stored in the meantime

    def _known(self, names: Sequence[str]) -> QuestionSet | None:
        for name in names:
            if name in self._recent:
                self._recent.move_to_end(name)
                return self._recent[name]
        return None

    def _remember(self, name: str, questions: QuestionSet) -> None:
        self._recent[name] = questions
        while len(self._recent) > self._in_memory:
            self._recent.popitem(last=False)


def content_of(questions: QuestionSet) -> dict[str, Any]:
    """Return a set for JSON."""
    return {
        "prompt": questions.prompt,
        "style": questions.style,
        "questions": [question.content() for question in questions.questions],
        "provenance": questions.provenance,
        **questions.missing(),
    }


def to_json(questions: QuestionSet) -> bytes:
    """Serialize a set for a store."""
    return orjson.dumps(content_of(questions))


def from_json(content: bytes, id: str) -> QuestionSet | None:
    """Return the set written by `to_json`, or None if *content* is not the whole set with that *id*."""
    try:
        written = orjson.loads(content)
        questions = tuple(read(entry) for entry in written.pop("questions"))
        unasked = tuple(written.pop("unasked", ()))
        found = QuestionSet(**written, questions=questions, unasked=unasked)
        return found if found.id == id and isinstance(found.provenance, dict) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def read(entry: dict[str, Any]) -> Question:
    """Return a question written by `Question.content`.  Raises `KeyError` or `TypeError`."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Question(**fields)
