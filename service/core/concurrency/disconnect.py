"""Work for a caller who may leave."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

UNWATCHED_S = 0.05  # most work ends within it, and who leaves so early saves nobody anything


class CallerGone(Exception):
    """The caller closed the connection before the answer was ready."""


async def while_connected(receive: Callable[[], Awaitable[Any]], work: Coroutine[Any, Any, T]) -> T:
    """
    The result of *work*, unless the caller leaves first; then *work* is cancelled.

    *receive* is the ASGI channel of a request whose body has been read, so that the only thing it
    can still bring is the disconnect.  It is watched once the work has lasted a moment.

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

    watching: asyncio.Task[None] | None = None

    def begin() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    soon = asyncio.get_running_loop().call_later(UNWATCHED_S, begin)
    try:
        return await work
    except asyncio.CancelledError:
        if gone and not here.uncancel():  # ours, and nobody else's with it
            raise CallerGone from None
        raise
    finally:
        soon.cancel()
        if watching is not None:
            watching.cancel()
