"""Requests that wait for room in the lane: how many there may be, and whose turn it is."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from service.core.errors import Overloaded

MAX_REQUESTS = 1024  # verl-omni sends up to 800 at once
MAX_ITEMS = 16 * 1024
AGAIN_PER_S = 500  # items of all requests that are asked again after a while, whatever has become of the lane


class RetryBudget:
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

    def is_waited_for(self, metric: str) -> bool:
        """Whether somebody waits for room for *metric*."""
        return metric in self._lines

    @contextmanager
    def place(self, metric: str, size: int, items: int) -> Iterator[None]:
        """
        Wait for *metric*, with *size* bytes of so many items, while this is open.

        Raises:
            Overloaded: there is no room.
        """
        if size > self._free or self._requests >= MAX_REQUESTS or self._items + items > MAX_ITEMS:
            raise Overloaded("too many requests wait for their scores already", retry_after_s=5.0)
        self._count(size, 1, items)
        try:
            with self._line(metric):
                yield
        finally:
            self._count(-size, -1, -items)

    @asynccontextmanager
    async def turn(self, metric: str) -> AsyncIterator[bool]:
        """
        Have the turn of those who wait for *metric* while this is open; who came first has it first.

        Yields:
            Whether somebody else had it.
        """
        with self._line(metric) as line:
            waited = line.first.locked()
            async with line.first:
                yield waited

    def _count(self, size: int, requests: int, items: int) -> None:
        self._free -= size
        self._requests += requests
        self._items += items

    @contextmanager
    def _line(self, metric: str) -> Iterator["Line"]:
        line = self._lines.setdefault(metric, Line())
        line.length += 1
        try:
            yield line
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[metric]


class Line:
    """Those who wait for one metric.  Only the first looks for room, however many they are."""

    def __init__(self) -> None:
        self.first = asyncio.Lock()
        self.length = 0
