"""Threads for the event loop: its own pool, and those that decode images, prepare calls and run batches."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Self, TypeVar

from service.core.concurrency.budget import CALLER, Turns
from service.core.lanes import BULK, INTERACTIVE

log = logging.getLogger("scoregate.threads")

T = TypeVar("T")
ThreadTask = tuple["asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]

# On Linux niceness is per thread: decoding for trainers has the lowest priority.
NICENESS = {INTERACTIVE: 0, BULK: 5}

SPARE_THREADS = 1  # each lane has it for callers without a running task


class FairThreads:
    """
    A thread pool that callers share in turns, so that one with many images does not delay others.

    If all *workers* are busy, callers without a running task may use a *spare* thread, so that they do not
    wait for a slow image of another caller.

    The standard library's executor has one queue, and its round trip from the event loop takes three times
    as long.

    Args:
        begin: called first on each thread; its exceptions are logged.
        spare: threads in addition to the *workers*.
    """

    def __init__(self, workers: int, name: str, begin: Callable[[], object] = int, spare: int = 0) -> None:
        self._workers, self._spare, self._name, self._begin = workers, spare, name, begin
        self._threads: list[Thread] = []
        self._turns: Turns[ThreadTask] = Turns()
        self._running: Counter[object] = Counter()  # running tasks by caller
        self._lock = Lock()
        self._closed = False
        self._handed: SimpleQueue[tuple[object, ThreadTask] | None] = SimpleQueue()  # None ends a thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.shutdown()

    def run(self, work: Callable[..., T], *args: Any) -> "asyncio.Future[T]":
        """
        Run *work* on one of the threads when it is the caller's turn, unless the future is cancelled before.

        Raises:
            RuntimeError: the pool was shut down, or the system allows no thread.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads have ended")
            who = CALLER.get().who
            if not self._turns.callers and self._has_thread(who):
                self._start(who, (future, work, args))
            else:
                self._turns.add((future, work, args))
                self._hand_out()  # a spare thread may be free for another caller
        return future

    def shutdown(self) -> None:
        """Finish all tasks, and end the threads."""
        with self._lock:
            self._closed = True
            self._hand_out()
        for thread in self._threads:
            thread.join()

    def _hand_out(self) -> None:
        """Start the tasks that may run now; end the threads if the pool is closed and idle."""
        while self._turns.callers and self._has_thread(self._turns.first(self._running)[0]):
            self._start(*self._turns.take(self._running))
        if self._closed and not self._running:
            for _ in self._threads:
                self._handed.put(None)

    def _grow(self) -> bool:
        """Start a thread, and return True if that worked.  Raises `RuntimeError` without any thread."""
        thread = Thread(target=self._run, name=f"{self._name}_{len(self._threads)}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system allows no more
            if not self._threads:
                raise
            return False
        self._threads.append(thread)
        return True

    def _has_thread(self, who: object) -> bool:
        """Return True if a thread is free for a task of *who*; start one if needed, see `_grow`."""
        running, spare = self._running.total(), 0 if who in self._running else self._spare
        return running < self._workers + spare and (running < len(self._threads) or self._grow())

    def _start(self, who: object, task: ThreadTask) -> None:
        self._running[who] += 1
        self._handed.put((who, task))

    def _run(self) -> None:
        try:
            self._begin()
        except Exception as exc:  # tasks run all the same
            log.error("a thread failed to begin", exc_info=exc)
        while handed := self._handed.get():
            who, task = handed
            do(*task)
            del handed, task  # otherwise the result would stay in memory until the next task
            with self._lock:
                self._running[who] -= 1
                if not self._running[who]:
                    del self._running[who]
                del who  # it would stay in memory like the result
                if self._turns.callers or self._closed:
                    self._hand_out()


async def on_thread(work: Callable[..., T], *args: object, pool: Executor | None = None) -> T:
    """Run `finished` on a thread of *pool*, by default the loop's own pool."""
    return await asyncio.get_running_loop().run_in_executor(pool, finished, work, *args)


def finished(work: Callable[..., T], *args: object) -> T:
    """
    Return the result of *work*.

    Raises:
        RuntimeError: *work* raised an exception that a future cannot carry.  A future rejects
            `StopIteration` and would never be done; `SystemExit` would end the event loop, and
            `CancelledError` a task.
    """
    try:
        return work(*args)
    except BaseException as exc:
        if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
            raise
        raise RuntimeError(f"the work raised {type(exc).__name__}") from exc


def do(future: "asyncio.Future[T]", work: Callable[..., T], args: tuple[Any, ...]) -> None:
    """Run *work* and resolve *future*, unless it is cancelled."""
    if future.cancelled():
        return
    try:
        settle = partial(future.set_result, finished(work, *args))
    except Exception as exc:
        settle = partial(future.set_exception, exc)
    with suppress(RuntimeError):  # the loop has ended
        future.get_loop().call_soon_threadsafe(unless_done, future, settle)
    del future, settle  # otherwise an exception would be part of a reference cycle


def unless_done(future: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
    """Resolve the future, unless it was cancelled."""
    if not future.done():
        settle()


def cpu_threads(workers: int, begin: Callable[[], object] = int) -> dict[str, FairThreads]:
    """
    Return a pool of *workers* threads and a spare one for each lane: bulk work never delays interactive work.

    Args:
        begin: called first on each thread.
    """

    def begins(nice: int) -> None:
        os.nice(nice)
        begin()

    return {
        lane: FairThreads(workers, f"cpu-{lane}", partial(begins, nice), SPARE_THREADS)
        for lane, nice in NICENESS.items()
    }
