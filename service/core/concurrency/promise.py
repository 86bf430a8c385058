"""A result that comes once."""

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar, cast

log = logging.getLogger("scoregate.promise")

T = TypeVar("T")


class Promise(Generic[T]):
    """
    A future that tells at once: its callbacks run where its result is set, not in a turn of the loop.

    A result on its way through several hands takes one turn of the loop that way, instead of one for each.
    As with a future, a callback that fails is a line in the log: the others are told, and whoever set the
    result goes on.
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
        """Whether it has its result, or was cancelled."""
        return self._done

    def cancelled(self) -> bool:
        """Whether there will be no result."""
        return self._cancelled

    def result(self) -> T:
        """The result.  Raises `CancelledError` where there is none, `InvalidStateError` before it is done."""
        if self._cancelled:
            raise asyncio.CancelledError
        if not self._done:
            raise asyncio.InvalidStateError("the result has not come")
        return cast(T, self._result)

    def set_result(self, result: T) -> None:
        """Tell everyone.  Raises `InvalidStateError` where it is done."""
        if self._done:
            raise asyncio.InvalidStateError("it is done")
        self._result = result
        self._tell()

    def cancel(self) -> bool:
        """Tell everyone that there will be none; False where it is done."""
        if self._done:
            return False
        self._cancelled = True
        self._tell()
        return True

    def add_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Have *callback* called with this once it is done; now, where it is."""
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def remove_done_callback(self, callback: "Callable[[Promise[T]], object]") -> None:
        """Tell *callback* nothing."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    def _tell(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            try:
                callback(self)
            except Exception as exc:
                log.error("a callback failed", exc_info=exc)


async def all_done(promises: Sequence[Promise[T]]) -> None:
    """Return when all of them are done, however they are."""
    waiting = [promise for promise in promises if not promise.done()]
    if not waiting:
        return
    everyone, left = asyncio.get_running_loop().create_future(), len(waiting)

    def one_more(promise: Promise[T]) -> None:
        nonlocal left
        left -= 1
        if not left and not everyone.done():
            everyone.set_result(None)

    for promise in waiting:
        promise.add_done_callback(one_more)
    try:
        await everyone
    finally:
        if left:
            for promise in waiting:
                promise.remove_done_callback(one_more)
