"""How many bytes all requests hold together, of bodies and of pictures by URL."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.core.errors import MemoryFull

SMALL = 2**20  # bytes; who holds no more has room while larger ones fill the rest
LARGE_PART = 7 / 8  # of the budget, for those larger ones together
RETRY_S = 2.0


class ByteBudget:
    """
    A bound on the bytes that callers send, or have fetched, of all requests together.

    Nothing waits here: bytes that do not fit are refused.  So whoever holds some never waits for others that
    hold some, too.

    Args:
        total: bytes.
    """

    def __init__(self, total: int) -> None:
        self.total, self.held = total, 0

    @contextmanager
    def share(self) -> Iterator["Share"]:
        """What one request or one picture holds; all of it is given back with the context."""
        share = Share(self)
        try:
            yield share
        finally:
            share.shrink(share.size)


class Share:
    """
    What one holder has of a budget.

    Attributes:
        size: bytes.
    """

    def __init__(self, budget: ByteBudget) -> None:
        self._budget, self.size = budget, 0

    def grow(self, size: int) -> None:
        """Hold *size* bytes more.  Raises `MemoryFull` where they do not fit; then nothing changes."""
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
