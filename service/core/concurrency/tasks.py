"""Tasks of the event loop: in the background, and side by side."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")


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

    async with asyncio.TaskGroup() as group:
        for work in chain((first, second), coming):
            begun.append(group.create_task(run(work)))
            while at_once and len(begun) - ended >= at_once():
                room.clear()
                await room.wait()
    return [task.result() for task in begun]
