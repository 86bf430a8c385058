"""The cache of outcomes in memory: outcomes of models and not scores, so metrics share them."""

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol

import numpy as np

from models.core.outcomes import CallResult

ENTRY_BYTES = 200  # bytes of an entry of the ordered dict, without key and value


class Cache(Protocol):
    """
    A cache of outcomes by `Call.key`.  It raises nothing: a failure is a miss.

    Attributes:
        stores: it stores something, so that a miss is worth counting.
    """

    stores: bool

    async def find(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        """Return the outcome under each key, or None."""
        ...

    def keep(self, key: bytes, outcome: CallResult) -> None:
        """Store *outcome*; in this process it can be found immediately."""
        ...


class OutcomeCache:
    """An LRU cache of at most *max_bytes*; one of 0 bytes stores nothing."""

    def __init__(self, max_bytes: int) -> None:
        self._max, self.stores = max_bytes, max_bytes > 0
        self._outcomes: OrderedDict[bytes, tuple[CallResult, int]] = OrderedDict()
        self.bytes = 0  # bytes of all entries, as `size_of` counts them

    def __len__(self) -> int:
        return len(self._outcomes)

    async def find(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        """Return the outcome under each key, or None; never yields to the event loop."""
        return [self.get(key) for key in keys]

    def get(self, key: bytes) -> CallResult | None:
        """Return the outcome under *key*, or None."""
        found = self._outcomes.get(key)
        if found is None:
            return None
        self._outcomes.move_to_end(key)
        return found[0]

    def keep(self, key: bytes, outcome: CallResult) -> None:
        """Store *outcome* unless it is too large, and evict the oldest entries."""
        size = ENTRY_BYTES + size_of(key) + size_of(outcome)
        if size > self._max:
            return
        self._drop(self._outcomes.pop(key, None))
        self._outcomes[key] = (outcome, size)
        self.bytes += size
        while self.bytes > self._max:
            self._drop(self._outcomes.popitem(last=False)[1])

    def _drop(self, entry: tuple[CallResult, int] | None) -> None:
        self.bytes -= entry[1] if entry else 0


def size_of(value: Any) -> int:
    """Return the bytes of *value* with all its parts, including numbers that Python shares."""
    size = sys.getsizeof(value)
    if isinstance(value, tuple):
        return size + sum(map(size_of, value))
    if is_dataclass(value):
        return size + sum(size_of(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, np.ndarray) and value.base is not None:
        return size + value.nbytes  # `getsizeof` excludes the data of a view
    return size


NO_CACHE = OutcomeCache(0)
