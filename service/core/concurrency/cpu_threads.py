"""The threads that decode pictures, prepare calls and run batches."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Self, TypeVar

from service.core.concurrency.threads import finished
from service.core.concurrency.turns import Turns
from service.core.lanes import BULK, INTERACTIVE

log = logging.getLogger("scoregate.threads")

T = TypeVar("T")
Task = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]

# Linux keeps it for each thread: decoding for trainers gives way to everything else.
NICE = {INTERACTIVE: 0, BULK: 5}


SPARE = 1  # thread of each lane, for callers of whom none has a task under way


class FairThreads:
    """
    Threads that callers share in turns: one with many pictures never stands before one with a few.

    Where each thread is busy, those of whom none runs anything have a *spare* one: nobody waits until a slow
    picture of somebody else is done, and no thread is kept free of whoever is alone.

    The standard library's executor knows one queue, and its way from the event loop and back takes three
    times as long.

    Args:
        begin: what each thread does first; where it fails, the thread works without.
        spare: threads beside the *workers*.
    """

    def __init__(self, workers: int, name: str, begin: Callable[[], object] = int, spare: int = 0) -> None:
        self._workers, self._spare, self._name, self._begin = workers, spare, name, begin
        self._threads: list[Thread] = []
        self._turns: Turns[Task] = Turns()
        self._running: Counter[object] = Counter()  # tasks that a thread has, by caller
        self._lock = Lock()
        self._closed = False
        self._handed: SimpleQueue[tuple[object, Task] | None] = SimpleQueue()  # None ends a thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()

    def run(self, work: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        """
        Have *work* done by one of the threads, when it is the caller's turn.

        A task whose future is cancelled before is dropped.

        Raises:
            RuntimeError: the threads were shut down, or the system has not even one for them.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads have ended")
            self._turns.add((future, work, args))
            try:
                self._hand_out()
            except RuntimeError:
                future.cancel()
                raise
        return future

    def shutdown(self) -> None:
        """End the threads once everything that was asked of them is done."""
        with self._lock:
            self._closed = True
            self._hand_out()
        for thread in self._threads:
            thread.join()

    def _hand_out(self) -> None:
        """Give threads what may run now; end them where they are closed and nothing is left."""
        while self._turns and self._may_run(self._turns.first(self._running)[0]):
            if len(self._threads) == self._running.total() and not self._grow():
                break
            who, task = self._turns.take(self._running)
            self._running[who] += 1
            self._handed.put((who, task))
        if self._closed and not self._running:
            for _ in self._threads:
                self._handed.put(None)

    def _grow(self) -> bool:
        """Start a thread; return whether there is one more.  Raises `RuntimeError` where there is none."""
        thread = Thread(target=self._run, name=f"{self._name}_{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system allows no more; those there are have its turn, too
            if not self._threads:
                raise
            return False
        self._threads.append(thread)
        return True

    def _may_run(self, who: object) -> bool:
        spare = 0 if who in self._running else self._spare
        return self._running.total() < self._workers + spare

    def _run(self) -> None:
        try:
            self._begin()
        except Exception as exc:  # whoever waits for the thread waits for a result, not for how it begins
            log.error("a thread failed to begin", exc_info=exc)
        while handed := self._handed.get():
            who, task = handed
            do(*task)
            del handed, task  # or its result would stay until the next one comes
            with self._lock:
                self._running[who] -= 1
                if not self._running[who]:
                    del self._running[who]
                self._hand_out()


def do(future: "asyncio.Future[T]", work: Callable[..., T], args: tuple[Any, ...]) -> None:
    """The work, unless nobody waits for it any more."""
    if future.cancelled():
        return
    try:
        settle = partial(future.set_result, finished(work, *args))
    except Exception as exc:
        settle = partial(future.set_exception, exc)
    with suppress(RuntimeError):  # the loop has ended, and with it whoever waited
        future.get_loop().call_soon_threadsafe(unless_done, future, settle)
    del future, settle  # an error would keep both, and they the error


def unless_done(future: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    """Give the future its result, unless whoever waited has left."""
    if not future.done():
        settle()


def cpu_threads(workers: int, begin: Callable[[], object] = int) -> dict[str, FairThreads]:
    """
    A pool of *workers* threads and a spare one for each lane: bulk work never delays interactive work.

    Args:
        begin: what each thread does first.
    """

    def begins(nice: int) -> None:
        os.nice(nice)
        begin()

    return {
        lane: FairThreads(workers, f"cpu-{lane}", partial(begins, nice), SPARE) for lane, nice in NICE.items()
    }
