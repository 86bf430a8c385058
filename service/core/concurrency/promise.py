"""Promises: futures with synchronous callbacks."""

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar, cast

log = logging.getLogger("scoregate.promise")

T = TypeVar("T")


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
