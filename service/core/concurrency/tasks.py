"""Work that goes on by itself, held until it has ended: the event loop alone would let go of it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Tasks:
    """Tasks under way."""

    def __init__(self) -> None:
        self._under_way: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin *work*."""
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def wait(self) -> None:
        """Return when all have ended, however they did."""
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def cancel(self) -> None:
        """End all of them, and return when that is done."""
        for task in self._under_way:
            task.cancel()
        await self.wait()
