"""An event loop in a thread, for synchronous callers."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from types import AsyncGeneratorType
from typing import Any, Protocol, TypeVar, cast

from scoregate.errors import ServiceConnectionError

T = TypeVar("T")

_forking = threading.Lock()  # no portal opens or ends while a process forks
_open: set[Portal] = set()
PARK_S = 5.0  # most seconds that a fork waits for a loop
LOOK_S = 0.001  # between two checks whether a fork is over


class Portal:
    """
    An event loop that runs in a thread until `close`.

    During a fork the loop pauses between two callbacks.  Otherwise a child could inherit a lock that the
    loop's thread held, such as an import lock, and that is never released.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="scoregate", daemon=True)
        self._forked = threading.Event()
        with _forking:
            self._thread.start()
            _open.add(self)

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *work* in the loop; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* and return its result; cancel it if the caller is interrupted."""
        try:
            return self.submit(work).result()
        except CancelledError as exc:
            raise ServiceConnectionError("the client was closed meanwhile") from exc
        except (KeyboardInterrupt, SystemExit):  # there may be no future yet, though the work has begun
            self._loop.call_soon_threadsafe(cancel, work)
            raise

    def leave(self, results: AsyncGenerator[Any, None]) -> None:
        """
        Close *results* in the loop, without waiting.

        The garbage collector ends generators in any thread, in the loop's own, too.
        """
        closing = ended(results)
        try:
            self.submit(closing)
        except RuntimeError:  # the loop has ended, and its generators with it
            closing.close()

    def is_current(self) -> bool:
        """Return True in a task of the loop."""
        return threading.current_thread() is self._thread

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel all tasks, run *last*, and return when the loop and its thread have ended."""
        ended = self.end(last)
        if threading.current_thread() is not self._thread:
            ended.result()
            self._thread.join()

    def end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> Future[None]:
        """
        Close without waiting.

        The garbage collector runs finalizers in any thread: in the loop's own, or in one that holds
        `_forking`.  So `end` takes no lock.
        """
        ended = self.submit(self._end(last))
        ended.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._leave))
        return ended

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await last()
        with suppress(RuntimeError):  # at exit no thread starts since Python 3.12; the executor has ended
            await self._loop.shutdown_default_executor()

    def _leave(self) -> None:
        """Stop the loop; if a fork is in progress, retry after it."""
        if not _forking.acquire(blocking=False):
            self._loop.call_later(LOOK_S, self._leave)
            return
        _open.discard(self)
        _forking.release()
        self._loop.stop()

    def pause(self) -> None:
        """Pause the loop until `resume`; return when it has paused."""
        if threading.current_thread() is self._thread:
            return
        parked = threading.Event()
        self._forked.clear()

        def park() -> None:
            parked.set()
            self._forked.wait()

        self._loop.call_soon_threadsafe(park)
        parked.wait(PARK_S)

    def resume(self) -> None:
        """Resume the loop."""
        self._forked.set()


def before_fork() -> None:
    """Pause all loops."""
    _forking.acquire()
    for portal in _open:
        portal.pause()


def after_fork_in_parent() -> None:
    """Resume all loops."""
    for portal in _open:
        portal.resume()
    _forking.release()


def after_fork_in_child() -> None:
    """Forget the loops, whose threads do not exist in the child."""
    _open.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=before_fork, after_in_parent=after_fork_in_parent, after_in_child=after_fork_in_child
    )


def cancel(work: Coroutine[Any, Any, Any]) -> None:
    """Cancel the task of *work*, if it has not ended."""
    for task in asyncio.all_tasks():
        if task.get_coro() is work:
            task.cancel()


async def ended(results: AsyncGenerator[Any, None]) -> None:
    """Close a generator; one that runs was cancelled, since its caller was interrupted, and closes itself."""
    if not cast(AsyncGeneratorType[Any, None], results).ag_running:
        await results.aclose()


async def nothing() -> None:
    """Do nothing: the default cleanup."""


class HasPortal(Protocol):
    """What has a portal for the methods of a client."""

    def here(self) -> Portal:
        """Return the portal of this process."""

    def close(self) -> None:
        """Close it."""


class Portals:
    """
    A portal for each process that uses a client, created lazily.

    No thread survives a fork, so a child creates its own.  The parent's portal is not closed in the child,
    since both share its selector.
    """

    def __init__(self) -> None:
        self._by_process: dict[int, Portal] = {}
        self._last = nothing
        _all.add(self)

    def serve(self, owner: object, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run *last* in each portal before it ends, and end when *owner* is collected."""
        self._last = last
        weakref.finalize(owner, self._end).atexit = False

    def here(self) -> Portal:
        """Return the portal of this process."""
        portal = self._by_process.get(os.getpid())
        if portal is None:
            made = Portal()
            portal = self._by_process.setdefault(os.getpid(), made)
            if portal is not made:  # another thread was first
                made.close(nothing)
        return portal

    def close(self) -> None:
        """Close the portal of this process, if any."""
        portal = self._by_process.pop(os.getpid(), None)
        if portal is not None:
            portal.close(self._last)

    def _end(self) -> None:
        portal = self._by_process.pop(os.getpid(), None)
        if portal is not None:
            portal.end(self._last)


_all: weakref.WeakSet[Portals] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Close what is open at the end of the process."""
    for portals in tuple(_all):
        portals.close()
