"""A lease on a question set, held while it is written."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from service.core.concurrency.watcher import Watcher
from service.core.errors import NotReady
from service.questions.stores.contract import LEASE_S, Store


@asynccontextmanager
async def leased(
    store: Store, key: str, sleep: Callable[[float], Awaitable[None]]
) -> AsyncIterator[str | None]:
    """
    Return the token of a lease on *key*, renewed until the block ends, or None if another process has one.

    If the store fails in the meantime, the block goes on.  The lease may expire then, and `Store.put` refuses
    its token.

    Raises:
        NotReady: the store failed at the beginning.
    """
    token = await store.claim(key)
    if token is None:
        yield None
        return

    async def renew() -> None:
        with suppress(NotReady):
            await store.renew(key, token)

    renewals = Watcher(renew, LEASE_S / 3, sleep)
    await renewals.start()
    try:
        yield token
    finally:
        await renewals.aclose()
        with suppress(NotReady):
            await store.release(key, token)
