"""Batches made by another process, ahead of the training steps that use them."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader, IterableDataset


class Batches(IterableDataset[Any]):
    """A dataset of fresh scenes for every step, each seeded by its step, so that training can be resumed."""

    def __init__(self, make: Callable[[int], Any], first: int) -> None:
        self._make, self._first = make, first

    def __iter__(self) -> Iterator[Any]:
        return (self._make(step) for step in itertools.count(self._first))


def ahead(make: Callable[[int], Any], first: int) -> Iterator[Any]:
    """Yield batches made by another process during training."""
    return iter(DataLoader(Batches(make, first), batch_size=None, num_workers=1, prefetch_factor=4))
