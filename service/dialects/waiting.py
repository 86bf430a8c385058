"""Requests that wait for room in the lane: how much memory they may take."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.errors import Overloaded


class WaitingRoom:
    """
    The pictures of requests that were refused and wait to be asked again.

    Args:
        total: bytes that may wait.
    """

    def __init__(self, total: int) -> None:
        self._free = total

    @contextmanager
    def place(self, size: int) -> Iterator[None]:
        """Wait with *size* bytes while this is open.  Raises `Overloaded` where there is no room."""
        if size > self._free:
            raise Overloaded("too many requests wait for their scores already", retry_after_s=5.0)
        self._free -= size
        try:
            yield
        finally:
            self._free += size
