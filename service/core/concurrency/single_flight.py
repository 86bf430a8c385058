"""Deduplication of equal work at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """
    Running work by key.

    Work continues when its callers leave, since its result will be stored.  An exception is raised by all
    waiting callers.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def do(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Return the result of *work*, and True if it was already running for another caller."""
        joined = key in self._tasks
        if not joined:
            task = self._tasks[key] = asyncio.create_task(self._run(key, work))
            # Mark the exception as retrieved: all callers may have left.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._tasks[key]), joined

    async def _run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            del self._tasks[key]

    async def aclose(self) -> None:
        """Cancel running work, and wait until it has ended."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
