"""What a cache of outcomes is."""

from collections.abc import Sequence
from typing import Protocol

from models.core.outcomes import CallResult


class Cache(Protocol):
    """Where outcomes are kept, by `Call.key`; one that fails finds nothing, and raises nothing."""

    async def find(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        """The outcome under each key, or None."""
        ...

    def keep(self, key: bytes, outcome: CallResult) -> None:
        """Keep *outcome*, at once for those who ask this process."""
        ...
