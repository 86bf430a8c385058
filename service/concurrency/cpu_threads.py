"""The threads that decode pictures and prepare calls."""

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, ParamSpec, TypeVar

from service.concurrency.turns import Turns
from service.lanes import BULK, INTERACTIVE

P = ParamSpec("P")
T = TypeVar("T")
Task = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]

# Linux keeps it for each thread: decoding for trainers gives way to everything else.
NICE = {INTERACTIVE: 0, BULK: 5}


class FairThreads(Executor):
    """
    Threads that requests share in turns: one with many pictures never stands before one with a few.

    The standard library's executor knows one queue.  A task whose future is cancelled is dropped.
    """

    def __init__(self, workers: int, name: str, nice: int) -> None:
        self._workers, self._name, self._nice = workers, name, nice
        self._threads: list[Thread] = []
        self._turns: Turns[Task] = Turns()
        self._lock = Lock()
        self._closed = False
        self._signals: SimpleQueue[bool] = SimpleQueue()  # one for each task; False ends a thread

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have *work* done by one of the threads, when it is the caller's turn."""
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads have ended")
            self._turns.add((future, work, args, kwargs))
            if len(self._threads) < self._workers:
                thread = Thread(target=self._run, name=f"{self._name}_{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._signals.put(True)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads once everything that was submitted is done."""
        assert not cancel_futures, "whoever waits for a future cancels it"
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._signals.put(False)
        if wait:
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        os.nice(self._nice)
        while self._signals.get():
            with self._lock:
                task = self._turns.take()
            do(*task)
            del task  # or its result would stay until the next one comes


def do(future: "Future[T]", work: Callable[..., T], args: Any, kwargs: Any) -> None:
    """The work, unless nobody waits for it any more."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work(*args, **kwargs))
    except BaseException as exc:
        future.set_exception(exc)
        del future  # the error would keep it, and it the error


def cpu_threads(workers: int) -> dict[str, FairThreads]:
    """A pool of *workers* threads for each lane: bulk work never stands before interactive work."""
    return {lane: FairThreads(workers, f"cpu-{lane}", nice) for lane, nice in NICE.items()}
