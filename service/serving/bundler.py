"""One trip for all that was asked since the last one began."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Bundler(Generic[A, B]):
    """
    Has *work* done on whatever waits, all of it at once, one bundle after the other.

    Whoever asks in the same turn of the event loop shares a bundle, and so do all who ask while one
    is under way.  *work* answers each of a bundle, in order; what it raises reaches all of them.
    """

    def __init__(self, work: Callable[[Sequence[A]], Awaitable[Sequence[B]]]) -> None:
        self._work = work
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._worker: asyncio.Task[None] | None = None

    def ask(self, one: A) -> "asyncio.Future[B]":
        """The answer to *one*, to be awaited or not."""
        answer: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((one, answer))
        if self._worker is None:
            self._worker = asyncio.create_task(self._run())
        return answer

    async def aclose(self) -> None:
        """Return once nothing waits."""
        if self._worker is not None:
            await self._worker

    async def _run(self) -> None:
        while self._waiting:
            bundle, self._waiting = self._waiting, []
            waiting = [future for _, future in bundle]
            try:
                answers = await self._work([one for one, _ in bundle])
                for future, answer in zip(waiting, answers, strict=True):
                    if not future.done():  # whoever asked may have left
                        future.set_result(answer)
            except Exception as exc:
                for future in waiting:
                    if not future.done():
                        future.set_exception(exc)
        self._worker = None
