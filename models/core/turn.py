"""The turn of a load: the networks of a process are built one after the other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident


class Turn:
    """A lock that its thread releases during a download."""

    def __init__(self) -> None:
        self._lock, self._thread = Lock(), 0

    def locked(self) -> bool:
        """Return True while a thread has the turn."""
        return self._lock.locked()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Take the turn when no other thread has it."""
        lock = self._lock  # another one after a fork
        with lock:
            self._thread = get_ident()
            try:
                yield
            finally:
                self._thread = 0

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the turn to other threads, and take it again at the end; without it, do nothing."""
        if self._thread != get_ident():
            yield
            return
        self._thread = 0
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
            self._thread = get_ident()

    def renew(self) -> None:
        """Forget who has the turn: a forked process has no thread to release it."""
        self._lock, self._thread = Lock(), 0


LOADING = Turn()  # transformers replaces methods for all threads while it builds a network
os.register_at_fork(after_in_child=LOADING.renew)
