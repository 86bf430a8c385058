"""The interface of caches of outcomes."""

from collections.abc import Sequence
from typing import Protocol

from models.core.outcomes import CallResult


class Cache(Protocol):
    """A cache of outcomes by `Call.key`.  It raises nothing: a failure is a miss."""

    async def find(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        """Return the outcome under each key, or None."""
        ...

    def keep(self, key: bytes, outcome: CallResult) -> None:
        """Store *outcome*; in this process it can be found immediately."""
        ...
