"""The cache of outcomes in Redis, which processes share."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from models.core.outcomes import CallResult
from service.core.concurrency.sharing import BatchLoader
from service.core.redis import RedisClient, RedisFailed
from service.observability.instruments import Instruments
from service.serving.cache import OutcomeCache

log = logging.getLogger("scoregate.cache")

PREFIX = "scoregate:scores:"


class RedisCache:
    """
    The outcomes of one model in Redis, with the memory cache of all models in front.

    A failure of Redis and a value that is no valid outcome count as misses.

    Args:
        ttl_s: of an outcome in Redis.
    """

    stores = True

    def __init__(
        self, memory: OutcomeCache, client: RedisClient, ttl_s: int, instruments: Instruments
    ) -> None:
        self._memory, self._client, self._ttl_s = memory, client, ttl_s
        self._errors = instruments.cache_errors.labels("scores")
        self._reads: BatchLoader[bytes, CallResult | None] = BatchLoader(self._read)
        self._writes: BatchLoader[tuple[bytes, CallResult], None] = BatchLoader(self._write)

    async def find(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        """Return the outcome under each key, or None."""
        found = {key: self._memory.get(key) for key in keys}
        if missing := [key for key, outcome in found.items() if outcome is None]:
            read = await asyncio.gather(*map(self._reads.load, missing))
            for key, outcome in zip(missing, read, strict=True):
                # Another request may have stored it during the round trip.
                found[key] = self._memory.get(key) if outcome is None else outcome
        return [found[key] for key in keys]

    def keep(self, key: bytes, outcome: CallResult) -> None:
        """Store *outcome* in memory now, and in Redis with the next batch."""
        self._memory.keep(key, outcome)
        self._writes.load((key, outcome))

    async def aclose(self) -> None:
        """Wait until everything is written."""
        await self._reads.aclose()
        await self._writes.aclose()

    async def _read(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        names = [redis_key(key) for key in keys]
        try:
            values = await self._client.do(lambda redis: redis.mget(names))
        except RedisFailed:
            return [None] * len(keys)
        outcomes = [None if value is None else CallResult.loads(value) for value in values]
        for key, outcome in zip(keys, outcomes, strict=True):
            if outcome is not None:
                self._memory.keep(key, outcome)
        if wrong := outcomes.count(None) - values.count(None):
            self._errors.inc(wrong)
            log.warning("values in Redis under %s are no outcome of a model: %d", PREFIX, wrong)
        return outcomes

    async def _write(self, entries: Sequence[tuple[bytes, CallResult]]) -> list[None]:
        async def send(redis: Any) -> None:
            async with redis.pipeline(transaction=False) as pipe:
                for key, outcome in entries:
                    pipe.set(redis_key(key), outcome.dumps(), ex=self._ttl_s)
                await pipe.execute()

        with suppress(RedisFailed):  # the client counts and logs it
            await self._client.do(send)
        return [None] * len(entries)


def redis_key(key: bytes) -> str:
    """Return the name of *key* in Redis."""
    return PREFIX + key.hex()
