"""Requests that wait for room in the lane: how many there may be, and whose turn it is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from service.errors import Overloaded

MAX_REQUESTS = 1024  # verl-omni sends up to 800 at once
MAX_ITEMS = 16 * 1024
AGAIN_PER_S = 500  # items of all requests that are asked again after a while, whatever has become of the lane


class WaitingRoom:
    """
    Requests that were refused and wait to be asked again.

    Args:
        total: bytes of pictures that may wait.
    """

    def __init__(self, total: int) -> None:
        self._free = total
        self._requests = self._items = 0
        self._lines: dict[str, Line] = {}

    @property
    def pause_s(self) -> float:
        """Seconds until a request is asked again, so that all of them are no more than `AGAIN_PER_S`."""
        return self._items / AGAIN_PER_S

    @contextmanager
    def place(self, size: int, items: int) -> Iterator[None]:
        """Wait with *size* bytes of so many items.  Raises `Overloaded` where there is no room."""
        if size > self._free or self._requests >= MAX_REQUESTS or self._items + items > MAX_ITEMS:
            raise Overloaded("too many requests wait for their scores already", retry_after_s=5.0)
        self._free, self._requests, self._items = self._free - size, self._requests + 1, self._items + items
        try:
            yield
        finally:
            self._free, self._requests, self._items = (
                self._free + size,
                self._requests - 1,
                self._items - items,
            )

    def is_waited_for(self, metric: str) -> bool:
        """Whether somebody waits for room for *metric*."""
        return metric in self._lines

    @asynccontextmanager
    async def turn(self, metric: str) -> AsyncIterator[None]:
        """Have the turn of those who wait for *metric* while this is open; who came first has it first."""
        line = self._lines.setdefault(metric, Line())
        line.length += 1
        try:
            async with line.first:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[metric]


class Line:
    """Those who wait for one metric.  Only the first looks for room, however many they are."""

    def __init__(self) -> None:
        self.first = asyncio.Lock()
        self.length = 0
