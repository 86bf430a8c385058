"""A bound on the bytes of request bodies and downloaded images in memory."""

from typing import Self

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


class Share:
    """
    The bytes that one request or download has of a budget, none at first; on exit all are given back.

    Attributes:
        size: bytes.
    """

    def __init__(self, budget: ByteBudget) -> None:
        self._budget, self.size = budget, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.shrink(self.size)

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
