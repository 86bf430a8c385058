"""Work of the event loop: tasks in the background and side by side, promises, and work that callers leave."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar, cast

log = logging.getLogger("scoregate.promise")

T = TypeVar("T")

UNWATCHED_S = 0.05  # most work ends within it, and cancelling it would save nothing


class Tasks:
    """A set of running tasks, referenced until they end: the event loop keeps weak references only."""

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


async def side_by_side(
    works: Iterable[Coroutine[Any, Any, T]], at_once: Callable[[], int] | None = None
) -> list[T]:
    """
    Return the results of *works*, in order.  A single one runs without a task.

    What one of them raises is raised as it is, and ends the others.

    Args:
        at_once: returns the limit of running works, called again before each one; by default there is no
            limit.  Works are taken from the iterable only when they may start.
    """
    coming = iter(works)
    first, second = next(coming, None), next(coming, None)
    if first is None:
        return []
    if second is None:
        return [await first]
    begun: list[asyncio.Task[T]] = []
    ended, room = 0, asyncio.Event()

    async def run(work: Coroutine[Any, Any, T]) -> T:
        nonlocal ended
        try:
            return await work
        finally:  # also if it is cancelled, which does not end the group
            ended += 1
            room.set()

    try:
        async with asyncio.TaskGroup() as group:
            for work in chain((first, second), coming):
                begun.append(group.create_task(run(work)))
                while at_once and len(begun) - ended >= at_once():
                    room.clear()
                    await room.wait()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in begun]


class Promise(Generic[T]):
    """
    A future whose callbacks run synchronously in `set_result`.

    A chain of promises takes one turn of the event loop instead of one for each.  As with a future, an
    exception of a callback is logged; the others are called all the same.
    """

    __slots__ = ("_callbacks", "_cancelled", "_done", "_result")

    def __init__(self) -> None:
        self._done = self._cancelled = False
        self._result: T | None = None
        self._callbacks: list[Callable[[Promise[T]], object]] = []

    def __await__(self) -> Generator[object, None, T]:
        yield from all_done([self]).__await__()
        return self.result()

    def done(self) -> bool:
        """Return True if it has its result or was cancelled."""
        return self._done

    def cancelled(self) -> bool:
        """Return True if it was cancelled."""
        return self._cancelled

    def result(self) -> T:
        """Return the result.  Raises `CancelledError` if cancelled, `InvalidStateError` if not done."""
        if self._cancelled:
            raise asyncio.CancelledError
        if not self._done:
            raise asyncio.InvalidStateError("the result is not set")
        return cast(T, self._result)

    def set_result(self, result: T) -> None:
        """Set the result, and call the callbacks.  Raises `InvalidStateError` if it is done."""
        if self._done:
            raise asyncio.InvalidStateError("the promise is done")
        self._result = result
        self._call_back()

    def cancel(self) -> bool:
        """Cancel it, and call the callbacks; return False if it is done."""
        if self._done:
            return False
        self._cancelled = True
        self._call_back()
        return True

    def add_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Call *callback* with this promise when it is done; now if it is."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def remove_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Remove *callback*, if it is there."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def _call_back(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception as exc:
                log.error("a callback failed", exc_info=exc)


async def all_done(promises: Sequence[Promise[T]]) -> None:
    """Return when all of them have a result or are cancelled."""
    waiting = [promise for promise in promises if not promise.done()]
    if not waiting:
        return
    all_of_them, left = asyncio.get_running_loop().create_future(), len(waiting)

    def count_down(promise: Promise[T]) -> None:
        nonlocal left
        left -= 1
        if not left and not all_of_them.done():
            all_of_them.set_result(None)

    for promise in waiting:
        promise.add_done_callback(count_down)
    try:
        await all_of_them
    finally:
        if left:
            for promise in waiting:
                promise.remove_done_callback(count_down)


class CallerGone(Exception):
    """The client closed the connection before the response was ready."""


async def while_connected(receive: Callable[[], Awaitable[Any]], work: Coroutine[Any, Any, T]) -> T:
    """
    Return the result of *work*, or cancel it if the client disconnects first.

    Args:
        receive: the ASGI channel of a request whose body has been read, so that its next message is the
            disconnect.  It is awaited after `UNWATCHED_S`.

    Raises:
        CallerGone: the client disconnected.
    """
    here = asyncio.current_task()
    assert here is not None
    gone = False

    async def watch() -> None:
        nonlocal gone
        await receive()
        gone = True
        here.cancel()

    watching: asyncio.Task[None] | None = None

    def begin() -> None:
        nonlocal watching
        watching = asyncio.create_task(watch())

    soon = asyncio.get_running_loop().call_later(UNWATCHED_S, begin)
    try:
        return await work
    except asyncio.CancelledError:
        if gone and not here.uncancel():  # cancelled by `watch` alone
            raise CallerGone from None
        raise
    finally:
        soon.cancel()
        if watching is not None:
            watching.cancel()
