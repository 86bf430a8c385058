"""Outcomes in Redis: what one process was answered, the others need not ask their models."""

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import orjson

from models.outcomes import Outcome
from models.settings import LocalSettings, ModelSettings, RemoteSettings
from service import __version__
from service.concurrency.batch_loader import BatchLoader
from service.redis.client import RedisClient, RedisFailed
from service.serving.cache.memory import OutcomeCache

# Settings that leave a model's answers as they are, or that its id, revision and dtype stand for already.
KEEPS_ANSWERS = {
    *LocalSettings.model_fields,
    *RemoteSettings.model_fields,
    "model",
    "pretrained",
    "features_mb",
    "fixed_ms",
    "per_call_ms",
} - {"family", "extra_body"}


class RedisCache:
    """
    The outcomes of one model in Redis, the latest of all models in memory in front of it.

    Where Redis fails, nothing is found and nothing is kept there: the model answers again, which is
    as right.  So is a value that is not an outcome.

    Args:
        recipe: what the outcomes depend on and a call's key does not hold (`recipe_of`).
        ttl_s: how long Redis keeps an outcome.
    """

    def __init__(self, memory: OutcomeCache, client: RedisClient, recipe: str, ttl_s: int) -> None:
        self._memory, self._client, self._ttl_s = memory, client, ttl_s
        self._prefix = f"scoregate:scores:{recipe}:"
        self._reads: BatchLoader[bytes, Outcome | None] = BatchLoader(self._read)
        self._writes: BatchLoader[tuple[bytes, Outcome], None] = BatchLoader(self._write)

    async def find(self, keys: Sequence[bytes]) -> list[Outcome | None]:
        """The outcome under each key, or None."""
        found = {key: self._memory.get(key) for key in keys}
        if missing := [key for key, outcome in found.items() if outcome is None]:
            read = await asyncio.gather(*map(self._reads.load, missing))
            for key, outcome in zip(missing, read, strict=True):
                # While Redis was asked, the model may have answered here.
                found[key] = self._memory.get(key) if outcome is None else outcome
        return [found[key] for key in keys]

    def keep(self, key: bytes, outcome: Outcome) -> None:
        """Keep *outcome* here at once, and in Redis soon."""
        self._memory.keep(key, outcome)
        self._writes.load((key, outcome))

    async def aclose(self) -> None:
        """Return once everything is written."""
        await self._reads.aclose()
        await self._writes.aclose()

    async def _read(self, keys: Sequence[bytes]) -> list[Outcome | None]:
        names = [self._name(key) for key in keys]
        try:
            values = await self._client.do(lambda redis: redis.mget(names))
        except RedisFailed:
            return [None] * len(keys)
        outcomes = [None if value is None else Outcome.loads(value) for value in values]
        for key, outcome in zip(keys, outcomes, strict=True):
            if outcome is not None:
                self._memory.keep(key, outcome)
        return outcomes

    async def _write(self, entries: Sequence[tuple[bytes, Outcome]]) -> list[None]:
        async def send(redis: Any) -> None:
            async with redis.pipeline(transaction=False) as pipe:
                for key, outcome in entries:
                    pipe.set(self._name(key), outcome.dumps(), ex=self._ttl_s)
                await pipe.execute()

        with suppress(RedisFailed):  # counted and logged there; the next process asks its model
            await self._client.do(send)
        return [None] * len(entries)

    def _name(self, key: bytes) -> str:
        return self._prefix + key.hex()


def recipe_of(settings: ModelSettings) -> str:
    """
    A short hash of what a model's answers depend on beside its name, id, revision and dtype.

    In one process these never change; other processes, and this one's successors, may be set otherwise.
    """
    recipe = [__version__, settings.model_dump(mode="json", exclude=KEEPS_ANSWERS)]
    return hashlib.sha256(orjson.dumps(recipe, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
