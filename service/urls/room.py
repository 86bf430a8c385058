"""The memory that one download holds."""

from types import TracebackType
from typing import Self

from service.concurrency.budget import Budget


class NoRoom(Exception):
    """There is no memory for what comes; nothing is held any more."""


class Room:
    """
    Some of a budget, which grows with what it is held for, until the context ends.

    Attributes:
        urgent: whether the request is interactive.
    """

    def __init__(self, budget: Budget, urgent: bool) -> None:
        self._budget, self.urgent = budget, urgent
        self._held = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back(self._held)

    def grow(self, size: int) -> None:
        """Hold *size* bytes at least.  Raises `NoRoom` if there is no memory for them now."""
        missing = size - self._held
        if missing <= 0:
            return
        if not self._budget.take_now(missing, self.urgent):
            self._give_back(self._held)
            raise NoRoom
        self._held += missing

    async def take(self, size: int) -> None:
        """Wait for *size* bytes, and hold them."""
        await self._budget.take(size, self.urgent)
        self._held += size

    def shrink(self, size: int) -> None:
        """Hold *size* bytes at most."""
        self._give_back(self._held - size)

    def _give_back(self, amount: int) -> None:
        self._budget.give_back(amount)
        self._held -= amount
