"""A bound on the bytes of request bodies and downloaded images in memory."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.core.errors import MemoryFull

SMALL = 2**20  # bytes; requests up to this size still fit after larger ones have used their part
LARGE_PART = 7 / 8  # of the budget, for all larger requests together
RETRY_S = 2.0


class ByteBudget:
    """
    A bound on the bytes of all requests and downloads together.

    Nothing waits here: bytes that do not fit are refused, so holders of memory cannot deadlock.

    Args:
        total: bytes.
    """

    def __init__(self, total: int) -> None:
        self.total, self.held = total, 0

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """Return an empty share for one request or download; all of it is given back on exit."""
        share = Share(self)
        try:
            yield share
        finally:
            share.shrink(share.size)


class Share:
    """
    The bytes that one holder has of a budget.

    Attributes:
        size: bytes.
    """

    def __init__(self, budget: ByteBudget) -> None:
        self._budget, self.size = budget, 0

    def grow(self, size: int) -> None:
        """Hold *size* bytes more.  Raises `MemoryFull` if they do not fit; then nothing changes."""
        budget = self._budget
        most = budget.total if self.size + size <= SMALL else LARGE_PART * budget.total
        if budget.held + size > most:
            raise MemoryFull(
                f"requests hold as many bytes as they may together ({budget.total >> 20} MiB)",
                retry_after_s=RETRY_S,
            )
        self.size += size
        budget.held += size

    def shrink(self, size: int) -> None:
        """Give *size* bytes back."""
        self.size -= size
        self._budget.held -= size
