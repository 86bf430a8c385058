"""The store that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.questions.stores.contract import Store
from service.questions.stores.redis import RedisStore
from service.questions.stores.sqlite import SQLiteStore
from service.redis.client import RedisClient
from service.settings.sections import CacheSettings


@asynccontextmanager
async def opened_store(cache: CacheSettings, client: RedisClient | None) -> AsyncIterator[Store]:
    """
    The store of question sets.

    Args:
        client: the Redis that `cache.questions` names, opened; None where it names a file.

    Raises:
        SettingsError: the file cannot be used.
    """
    if client:
        yield RedisStore(client, cache.questions_in_memory, cache.questions_ttl_s)
        return
    async with SQLiteStore(cache.questions_path, cache.questions_in_memory) as store:
        yield store
