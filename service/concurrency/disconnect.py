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
    here = asyncio.current_task()
    assert here is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        await receive()
        gone = True
        here.cancel()

    watching = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if gone and not here.uncancel():  # ours, and nobody else's with it
            raise CallerGone from None
        raise
    finally:
        watching.cancel()
