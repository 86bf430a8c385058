"""The store that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.core.redis.client import RedisClient
from service.core.redis.url import is_redis
from service.core.settings.sections import CacheSettings
from service.questions.stores.contract import Store
from service.questions.stores.file import usable
from service.questions.stores.redis import RedisStore
from service.questions.stores.sqlite import SQLiteStore


def check_store(cache: CacheSettings) -> None:
    """
    Open the file of question sets once, if there is to be one, before anything that takes long.

    Raises:
        SettingsError: it cannot be used; `NotYet` where another process keeps it locked.
    """
    if not is_redis(cache.questions):
        usable(cache.questions_path, busy_s=0.0).close()


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
