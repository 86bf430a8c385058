"""
Outcomes kept in memory: a call that was answered before never reaches its model again.

What is kept is the model's outcome, not a score, so all options of a metric share it.
"""

import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from models.core.outcomes import CallResult

ENTRY = 200  # bytes that the ordered dict takes for an entry, over key and value


class OutcomeCache:
    """The latest outcomes, as many as fit into *max_bytes*; the least recently used leave first."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._outcomes: OrderedDict[bytes, tuple[CallResult, int]] = OrderedDict()
        self.bytes = 0  # of all entries, as `size_of` counts them

    def __len__(self) -> int:
        return len(self._outcomes)

    async def find(self, keys: Sequence[bytes]) -> list[CallResult | None]:
        """The outcome under each key, or None, without letting go of the event loop."""
        return [self.get(key) for key in keys]

    def get(self, key: bytes) -> CallResult | None:
        """The outcome under *key*, or None."""
        found = self._outcomes.get(key)
        if found is None:
            return None
        self._outcomes.move_to_end(key)
        return found[0]

    def keep(self, key: bytes, outcome: CallResult) -> None:
        """Keep *outcome* if it fits at all, and let go of what no longer does."""
        size = ENTRY + size_of(key) + size_of(outcome)
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
    """Bytes of memory that *value* takes, with all that it holds; numbers that Python shares count too."""
    size = sys.getsizeof(value)
    if isinstance(value, tuple):
        return size + sum(map(size_of, value))
    if is_dataclass(value):
        return size + sum(size_of(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, np.ndarray) and value.base is not None:
        return size + value.nbytes  # a view; getsizeof counts an array's own memory only
    return size
