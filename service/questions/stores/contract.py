"""Where question sets are kept, with the latest ones in memory."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from service.questions.sets import Question, QuestionSet


class Store(ABC):
    """
    Sets by id, and ids by lookup key.

    Processes may share what lies behind.  The first set stored under a lookup key is the one in force
    for all of them, so that a prompt is scored with one set everywhere.  What is stored and is not
    a set counts as missing, and the next set written replaces it.

    All methods raise `NotReady` where the place of the sets fails.
    """

    def __init__(self, in_memory: int) -> None:
        self._in_memory = in_memory
        self._recent: OrderedDict[str, QuestionSet] = OrderedDict()  # by lookup key and by id

    async def find(self, key: str) -> QuestionSet | None:
        """The set under a lookup key."""
        return await self._cached(key, self._find)

    async def get(self, id: str) -> QuestionSet | None:
        """The set with that id."""
        return await self._cached(id, self._get)

    async def put(self, key: str, questions: QuestionSet) -> QuestionSet:
        """Store a set under its id and a lookup key; the set in force, which may be an earlier one."""
        in_force = await self._put(key, questions)
        self._remember(key, in_force)
        self._remember(in_force.id, in_force)
        return in_force

    @abstractmethod
    async def _find(self, key: str) -> QuestionSet | None: ...

    @abstractmethod
    async def _get(self, id: str) -> QuestionSet | None: ...

    @abstractmethod
    async def _put(self, key: str, questions: QuestionSet) -> QuestionSet: ...

    async def _cached(
        self, name: str, read: Callable[[str], Awaitable[QuestionSet | None]]
    ) -> QuestionSet | None:
        if name in self._recent:
            self._recent.move_to_end(name)
            return self._recent[name]
        found = await read(name)
        if found is None:
            return self._recent.get(name)  # what was put in the meantime
        self._remember(name, found)
        return found

    def _remember(self, name: str, questions: QuestionSet) -> None:
        self._recent[name] = questions
        while len(self._recent) > self._in_memory:
            self._recent.popitem(last=False)


def to_json(questions: QuestionSet) -> bytes:
    """A set as stores keep it."""
    return orjson.dumps(
        {
            "prompt": questions.prompt,
            "style": questions.style,
            "questions": [question.content() for question in questions.questions],
            "provenance": questions.provenance,
        }
    )


def from_json(content: bytes, id: str) -> QuestionSet | None:
    """The set that `to_json` wrote, or None where *content* is not the whole set with that *id*."""
    try:
        written = orjson.loads(content)
        questions = tuple(read(entry) for entry in written.pop("questions"))
        found = QuestionSet(**written, questions=questions)
        return found if found.id == id and isinstance(found.provenance, dict) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def read(entry: dict[str, Any]) -> Question:
    """A question as `Question.content` wrote it.  Raises `KeyError` or `TypeError`."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()
    }
    return Question(**fields)
