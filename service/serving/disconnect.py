"""Work for a caller who may leave."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class CallerGone(Exception):
    """The caller closed the connection before the answer was ready."""


async def while_connected(receive: Callable[[], Awaitable[Any]], work: Coroutine[Any, Any, T]) -> T:
    """
    The result of *work*, unless the caller leaves first; then *work* is cancelled.

    *receive* is the ASGI channel of a request whose body has been read, so that the only thing it
    can still bring is the disconnect.

    Raises:
        CallerGone: nobody waits for the result any more.
    """
    working = asyncio.create_task(work)
    watching = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise CallerGone
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)
