"""Question sets in a Redis that several processes share."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from service.errors import NotReady
from service.questions.sets import QuestionSet
from service.questions.stores.contract import Store, from_json, to_json
from service.redis.client import RedisClient, RedisFailed

T = TypeVar("T")

PREFIX = "scoregate:questions:"


class RedisStore(Store):
    """
    Sets and lookup keys as strings under `scoregate:questions:`, without an expiry.

    A key of ours that holds something other than a string is Redis' error, and so `NotReady`.
    """

    def __init__(self, client: RedisClient, in_memory: int) -> None:
        super().__init__(in_memory)
        self._client = client

    async def _find(self, key: str) -> QuestionSet | None:
        return await self._do(lambda redis: find(redis, key))

    async def _get(self, id: str) -> QuestionSet | None:
        return await self._do(lambda redis: get(redis, id))

    async def _put(self, key: str, questions: QuestionSet) -> QuestionSet:
        return await self._do(lambda redis: put(redis, key, questions))

    async def _do(self, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            return await self._client.do(work)
        except RedisFailed as exc:
            raise NotReady(f"the question store failed: {exc}") from exc


async def find(redis: Any, key: str) -> QuestionSet | None:
    """The set under a lookup key."""
    id = await redis.get(PREFIX + key)
    return None if id is None else await get(redis, id.decode(errors="replace"))


async def get(redis: Any, id: str) -> QuestionSet | None:
    """The set with that id."""
    content = await redis.get(PREFIX + id)
    return None if content is None else from_json(content, id)


async def put(redis: Any, key: str, questions: QuestionSet) -> QuestionSet:
    """The set in force: *questions*, unless another process was faster."""

    async def write(pipe: Any) -> QuestionSet:
        if in_force := await find(pipe, key):
            return in_force
        pipe.multi()
        pipe.set(PREFIX + questions.id, to_json(questions))
        pipe.set(PREFIX + key, questions.id)
        return questions

    # Begun anew where somebody else writes the lookup key in the meantime.
    in_force: QuestionSet = await redis.transaction(write, PREFIX + key, value_from_callable=True)
    return in_force
