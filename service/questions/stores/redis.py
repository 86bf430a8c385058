"""Question sets in a Redis that several processes share."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from service.core.errors import NotReady
from service.core.redis import RedisClient, RedisFailed
from service.questions.sets import ID, QuestionSet, from_json, to_json
from service.questions.stores.contract import LEASE_S, LeaseLost, Store

T = TypeVar("T")

PREFIX = "scoregate:questions:"
LEASE = PREFIX + "lease:"
LEASE_MS = round(1000 * LEASE_S)
KEYS_PER_SCAN = 256  # keys per scan


class RedisStore(Store):
    """
    Sets and lookup keys as strings under `scoregate:questions:`, and leases, which expire.

    A key with a value that is not a string is an error of Redis, and so `NotReady`.

    Args:
        ttl_s: seconds until a stored set expires; None for never.
    """

    def __init__(self, client: RedisClient, in_memory: int, ttl_s: int | None = None) -> None:
        super().__init__(in_memory)
        self._client, self._ttl_s = client, ttl_s

    async def claim(self, key: str) -> str | None:
        """Implement `Store.claim` by Redis' clock."""
        token = secrets.token_hex()
        taken = await self._do(lambda redis: redis.set(LEASE + key, token, nx=True, px=LEASE_MS))
        return token if taken else None

    async def renew(self, key: str, token: str) -> None:
        """Implement `Store.renew`."""
        await self._do(
            lambda redis: if_held(redis, key, token, lambda pipe, lease: pipe.pexpire(lease, LEASE_MS))
        )

    async def release(self, key: str, token: str) -> None:
        """Implement `Store.release`."""
        await self._do(lambda redis: if_held(redis, key, token, lambda pipe, lease: pipe.delete(lease)))

    async def sets(self) -> AsyncIterator[tuple[str, QuestionSet | None]]:
        """Implement `Store.sets` in any order; one may come twice if others are stored meanwhile."""
        cursor = 0
        while True:
            cursor, found = await self._do(partial(page, cursor=cursor))
            for id, content in found:
                yield id, from_json(content, id)
            if not cursor:
                return

    async def _find(self, *names: str) -> QuestionSet | None:
        return await self._do(lambda redis: find(redis, *names))

    async def _put(self, key: str, questions: QuestionSet, token: str | None) -> QuestionSet:
        return await self._do(lambda redis: put(redis, key, questions, token, self._ttl_s))

    def _remember(self, name: str, questions: QuestionSet) -> None:
        # Another process may write another set once a lookup key has expired.  The set of an id is fixed.
        if self._ttl_s is None or name == questions.id:
            super()._remember(name, questions)

    async def _do(self, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            return await self._client.do(work)
        except RedisFailed as exc:
            raise NotReady(f"the question store failed: {exc}") from exc


async def find(redis: Any, *names: str) -> QuestionSet | None:
    """Return the set under the first lookup key or id that has one."""
    for name in names:
        content = await redis.get(PREFIX + name)
        if content is not None and not name.startswith(ID):  # the value of a lookup key is an id
            name = content.decode(errors="replace")
            content = await redis.get(PREFIX + name)
        if content is not None and (found := from_json(content, name)):
            return found
    return None


async def if_held(redis: Any, key: str, token: str, change: Callable[[Any, str], object]) -> None:
    """Change the lease on a lookup key in one transaction with the check of its token."""
    lease = LEASE + key

    async def check(pipe: Any) -> None:
        held = await pipe.get(lease) == token.encode()
        pipe.multi()
        if held:
            change(pipe, lease)

    await redis.transaction(check, lease)


async def page(redis: Any, cursor: int) -> tuple[int, list[tuple[str, bytes]]]:
    """Return some ids with their content, and the next cursor; 0 after the last."""
    cursor, keys = await redis.scan(cursor, match=f"{PREFIX}{ID}*", count=KEYS_PER_SCAN)
    contents = await redis.mget(keys) if keys else []
    ids = [key.removeprefix(PREFIX.encode()).decode(errors="replace") for key in keys]
    return int(cursor), [(id, content or b"") for id, content in zip(ids, contents, strict=True)]


async def put(
    redis: Any, key: str, questions: QuestionSet, token: str | None, ttl_s: int | None = None
) -> QuestionSet:
    """Return the set in force: *questions*, unless another process was faster.  Raises `LeaseLost`."""

    async def write(pipe: Any) -> QuestionSet:
        if token is not None and await pipe.get(LEASE + key) != token.encode():
            raise LeaseLost
        in_force, known = await find(pipe, key), await find(pipe, questions.id)
        pipe.multi()
        if in_force is None:
            pipe.set(PREFIX + key, questions.id, ex=ttl_s)
        # The set is stored again with a new expiry, so that no lookup key outlives it.
        if known is None or (ttl_s and in_force is None):
            pipe.set(PREFIX + questions.id, to_json(known or questions), ex=ttl_s)
        return in_force or questions

    # The transaction is repeated if another process writes one of the keys in the meantime.
    watched = (PREFIX + key, PREFIX + questions.id, LEASE + key)
    in_force: QuestionSet = await redis.transaction(write, *watched, value_from_callable=True)
    return in_force
