"""Cancellation of work when its client disconnects."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

UNWATCHED_S = 0.05  # most work ends within it, and cancelling it would save nothing


class CallerGone(Exception):
    """The client closed the connection before the response was ready."""


async def while_connected(receive: Callable[[], Awaitable[Any]], work: Coroutine[Any, Any, T]) -> T:
    """
    Return the result of *work*, or cancel it if the client disconnects first.

    Args:
        receive: the ASGI channel of a request whose body has been read, so that its next message is the
            disconnect.  It is awaited after `UNWATCHED_S`.

    Raises:
        CallerGone: the client disconnected.
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
        if gone and not here.uncancel():  # cancelled by `watch` alone
            raise CallerGone from None
        raise
    finally:
        soon.cancel()
        if watching is not None:
            watching.cancel()
