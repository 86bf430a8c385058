"""The store of the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.core.redis import RedisClient, is_redis
from service.core.settings.sections import CacheSettings
from service.questions.stores.contract import Store
from service.questions.stores.redis import RedisStore
from service.questions.stores.sqlite import START_S, SQLiteStore, usable


def check_store(cache: CacheSettings, start_s: float = START_S) -> None:
    """
    Open the file of question sets once, if the settings name one, before anything slow.

    Args:
        start_s: see `SQLiteStore`.

    Raises:
        SettingsError: it cannot be used; `NotYet` if another process holds the lock.
    """
    if not is_redis(cache.questions):
        usable(cache.questions_path, 0.0, start_s).close()


@asynccontextmanager
async def opened_store(cache: CacheSettings, client: RedisClient | None) -> AsyncIterator[Store]:
    """
    Open the store of question sets.

    Args:
        client: of the Redis in `cache.questions`; None for a file.

    Raises:
        SettingsError: the file cannot be used.
    """
    if client:
        yield RedisStore(client, cache.questions_in_memory, cache.questions_ttl_s)
        return
    async with SQLiteStore(cache.questions_path, cache.questions_in_memory) as store:
        yield store
