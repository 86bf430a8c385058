"""Background tasks, referenced until they end: the event loop keeps weak references only."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Tasks:
    """A set of running tasks."""

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
