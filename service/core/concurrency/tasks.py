"""Work of the event loop: tasks in the background and side by side, and work that callers leave."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")

UNWATCHED_S = 0.05  # most work ends within it, and cancelling it would save nothing


class Tasks:
    """A set of running tasks, referenced until they end: the event loop keeps weak references only."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def wait(self) -> None:
        """Return when all have ended; ignore their exceptions."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def cancel(self) -> None:
        """Cancel all of them, and return when they have ended."""
        for task in self._running:
            task.cancel()
        await self.wait()


async def side_by_side(
    works: Iterable[Coroutine[Any, Any, T]], at_once: Callable[[], int] | None = None
) -> list[T]:
    """
    Return the results of *works*, in order.  A single one runs without a task.

    What one of them raises is raised as it is, and ends the others.

    Args:
        at_once: returns the limit of running works, called again before each one; by default there is no
            limit.  Works are taken from the iterable only when they may start.
    """
    coming = iter(works)
    first, second = next(coming, None), next(coming, None)
    if first is None:
        return []
    if second is None:
        return [await first]
    begun: list[asyncio.Task[T]] = []
    ended, room = 0, asyncio.Event()

    async def run(work: Coroutine[Any, Any, T]) -> T:
        nonlocal ended
        try:
            return await work
        finally:  # also if it is cancelled, which does not end the group
            ended += 1
            room.set()

    try:
        async with asyncio.TaskGroup() as group:
            for work in chain((first, second), coming):
                begun.append(group.create_task(run(work)))
                while at_once and len(begun) - ended >= at_once():
                    room.clear()
                    await room.wait()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in begun]


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
