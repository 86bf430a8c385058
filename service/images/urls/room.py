"""The memory of one download."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.core.concurrency.budget import Budget, Portion
from service.images.byte_budget import ByteBudget, Share


class NoRoom(Exception):
    """There is no memory for the next bytes; the download holds none any more."""


class Room:
    """
    Memory from two budgets: that of downloads, and that of all requests.

    Attributes:
        urgent: True for an interactive request.
    """

    def __init__(self, downloads: Budget, share: Share, urgent: bool) -> None:
        self._downloads, self._share, self.urgent = downloads, share, urgent
        self._portion: Portion | None = None
        self._held = 0

    def grow(self, size: int) -> None:
        """
        Hold *size* bytes at least.

        Raises:
            NoRoom: the budget of downloads is used up for now.
            MemoryFull: the budget of all requests is used up.
        """
        self._share.grow(max(0, size - self._share.size))
        if size <= self._held:
            return
        taken = self._downloads.take_now(size - self._held, self.urgent)
        if taken is None:
            self.shrink(0)
            raise NoRoom
        self._portion, self._held = taken, size

    async def take(self, size: int) -> None:
        """Wait for *size* bytes of the budget of downloads, and hold them."""
        self._portion = await self._downloads.take(size, self.urgent)
        self._held = size

    def shrink(self, size: int) -> None:
        """Hold *size* bytes at most."""
        self._share.shrink(max(0, self._share.size - size))
        if self._portion and self._held > size:
            self._portion.give_back(self._held - size)
            self._held = size


@contextmanager
def room(downloads: Budget, memory: ByteBudget, urgent: bool) -> Iterator[Room]:
    """Return memory for one download, given back on exit."""
    with Share(memory) as share:
        held = Room(downloads, share, urgent)
        try:
            yield held
        finally:
            held.shrink(0)
