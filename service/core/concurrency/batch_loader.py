"""One trip for all that was asked since the last one began."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class BatchLoader(Generic[A, B]):
    """
    Has *work* done on whatever waits, all of it at once, one batch after the other.

    Whoever asks in the same turn of the event loop shares a batch, and so do all who ask while one is
    under way.  *work* answers each question of a batch, in order; what it raises reaches all of them.
    """

    def __init__(self, work: Callable[[Sequence[A]], Awaitable[Sequence[B]]]) -> None:
        self._work = work
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._worker: asyncio.Task[None] | None = None

    def load(self, question: A) -> "asyncio.Future[B]":
        """The answer to *question*, to be awaited or not."""
        answer: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if self._worker is None:
            self._worker = asyncio.create_task(self._run())
        return answer

    async def aclose(self) -> None:
        """Return once nothing waits."""
        if self._worker is not None:
            await self._worker

    async def _run(self) -> None:
        futures: list[asyncio.Future[B]] = []
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                futures = [future for _, future in batch]
                await self._answer([question for question, _ in batch], futures)
        finally:  # however it ends, nobody is left waiting
            futures += [future for _, future in self._waiting]
            self._waiting, self._worker = [], None
            for future in futures:
                future.cancel()

    async def _answer(self, questions: Sequence[A], futures: "Sequence[asyncio.Future[B]]") -> None:
        try:
            for future, answer in zip(futures, await self._work(questions), strict=True):
                if not future.done():  # whoever asked may have left
                    future.set_result(answer)
        except Exception as exc:
            for future in futures:
                if not future.done():
                    future.set_exception(exc)
