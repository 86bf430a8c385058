"""Requests that wait for room in the lane: their limits and their order."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from service.core.errors import Overloaded

MAX_REQUESTS = 1024  # verl-omni sends up to 800 in parallel
MAX_ITEMS = 16 * 1024
AGAIN_PER_S = 500  # items of all requests that are retried, whatever the state of the lane


class RetryBudget:
    """
    The budget of refused requests that wait for a retry.

    Args:
        total: bytes of pictures that may wait.
    """

    def __init__(self, total: int) -> None:
        self._free = total
        self._requests = self._items = 0
        self._lines: dict[str, Line] = {}

    @property
    def pause_s(self) -> float:
        """Return the seconds until a retry, so that all retries stay below `AGAIN_PER_S`."""
        return self._items / AGAIN_PER_S

    def is_waited_for(self, metric: str) -> bool:
        """Return True if a request waits for room for *metric*."""
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
        Hold the turn of the line for *metric* while the context is open, in the order of arrival.

        Yields:
            True if another request had it.
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
    """The requests that wait for one metric.  Only the first checks for room."""

    def __init__(self) -> None:
        self.first = asyncio.Lock()
        self.length = 0
