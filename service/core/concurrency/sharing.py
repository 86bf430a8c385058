"""Work that several callers need at the same time, done once for all of them."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")


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


class BatchLoader(Generic[A, B]):
    """
    Calls *work* with all waiting items, one batch after the other.

    Items of one turn of the event loop share a batch, and so do all that arrive while a batch is running.
    *work* returns a result for each item, in order; its exception is raised by each of them.
    """

    def __init__(self, work: Callable[[Sequence[A]], Awaitable[Sequence[B]]]) -> None:
        self._work = work
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._worker: asyncio.Task[None] | None = None

    def load(self, item: A) -> "asyncio.Future[B]":
        """Return a future of the result for *item*, which need not be awaited."""
        future: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._worker is None:
            self._worker = asyncio.create_task(self._run())
        return future

    async def aclose(self) -> None:
        """Return when nothing waits."""
        if self._worker is not None:
            await self._worker

    async def _run(self) -> None:
        futures: list[asyncio.Future[B]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                futures = [future for _, future in batch]
                await self._resolve([item for item, _ in batch], futures)
        finally:  # also if the task is cancelled: no caller may wait forever
            futures += [future for _, future in self._waiting]
            self._waiting, self._worker = [], None
            for future in futures:
                future.cancel()

    async def _resolve(self, items: Sequence[A], futures: "Sequence[asyncio.Future[B]]") -> None:
        try:
            for future, result in zip(futures, await self._work(items), strict=True):
                if not future.done():  # the caller may have left
                    future.set_result(result)
        except Exception as exc:
            for future in futures:
                if not future.done():
                    future.set_exception(exc)
