"""Work done once however many ask for it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """
    Work under way, by key.

    It belongs to no caller: when the first one leaves, it goes on for the others, and when all have left
    it still ends, since its result will be stored.  A failure reaches everyone who waits and is then
    forgotten.
    """

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    async def do(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of *work*, and whether this caller joined work that was under way."""
        joined = key in self._tasks
        if not joined:
            task = self._tasks[key] = asyncio.create_task(self._run(key, work))
            # When everyone has left, nobody asks for its exception; that is no reason to complain.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._tasks[key]), joined

    async def _run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            del self._tasks[key]

    async def aclose(self) -> None:
        """Cancel what is still under way and wait for it to end."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
