"""Batches made by another process, ahead of the steps that learn from them."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader, IterableDataset


class Batches(IterableDataset[Any]):
    """Fresh scenes for every step, each step's from its own seed: resuming loses and repeats none."""

    def __init__(self, make: Callable[[int], Any], first: int) -> None:
        self._make, self._first = make, first

    def __iter__(self) -> Iterator[Any]:
        return (self._make(step) for step in itertools.count(self._first))


def ahead(make: Callable[[int], Any], first: int) -> Iterator[Any]:
    """Batches made by another process while the last one is learnt from."""
    return iter(DataLoader(Batches(make, first), batch_size=None, num_workers=1, prefetch_factor=4))
