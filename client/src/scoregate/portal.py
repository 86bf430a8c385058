"""An event loop in a thread of its own, for callers without one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from scoregate.errors import ConnectionFailed

T = TypeVar("T")


_forking = threading.Lock()  # no portal opens or closes while a process forks
_open: set[Portal] = set()
PARK_S = 5.0  # most seconds that a fork waits for a loop


class Portal:
    """
    A running event loop, from when this is made until `close`.

    While the process forks, the loop stands still between two callbacks.  Otherwise a child could inherit
    a lock that the loop's thread held just then, an import's for example, and nobody would release it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scoregate", daemon=True)
        self._forked = threading.Event()
        with _forking:
            self._thread.start()
            _open.add(self)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start *work* in the loop; whoever cancels the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What *work* returns or raises; where the caller is interrupted, it is cancelled."""
        future = self.submit(work)
        try:
            return future.result()
        except CancelledError as exc:
            raise ConnectionFailed("the client was closed meanwhile") from exc
        finally:
            future.cancel()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Cancel what is under way, run *last*, and end the loop and its thread."""
        with _forking:
            _open.discard(self)
        if threading.current_thread() is self._thread:  # the garbage collector came by here
            self._loop.stop()
            return
        self.run(self._end(last))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await last()
        await self._loop.shutdown_default_executor()

    def pause(self) -> None:
        """Return once the loop stands still, until `resume`."""
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
        """Let the loop go on."""
        self._forked.set()


def before_fork() -> None:
    """Have all loops stand still."""
    _forking.acquire()
    for portal in _open:
        portal.pause()


def after_fork_in_parent() -> None:
    """Go on."""
    for portal in _open:
        portal.resume()
    _forking.release()


def after_fork_in_child() -> None:
    """The parent's threads are not here."""
    _open.clear()
    _forking.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=before_fork,
        after_in_parent=after_fork_in_parent,
        after_in_child=after_fork_in_child,
    )


async def nothing() -> None:
    """What a portal has to do at its end that was never used."""


class Portals:
    """
    One portal for each process that uses a client, made when it is first needed.

    No thread survives a fork, so a child makes its own.  The parent's stays in the child's table: its loop
    shares a selector with the parent's, and closing it there would close it for both.
    """

    def __init__(self) -> None:
        self._by_process: dict[int, Portal] = {}

    def here(self) -> Portal:
        """The portal of this process."""
        portal = self._by_process.get(os.getpid())
        if portal is None:
            made = Portal()
            portal = self._by_process.setdefault(os.getpid(), made)
            if portal is not made:  # another thread was first
                made.close(nothing)
        return portal

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run *last* in the portal of this process, and close it; where there is none, nothing is open."""
        portal = self._by_process.pop(os.getpid(), None)
        if portal is not None:
            portal.close(last)
