"""Pairs of scores: of a served model and of its shadow, for the same input."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_PAIRS = 10_000  # of one metric: 160 KB


class Pairs:
    """
    The last pairs of one metric.

    Args:
        size: the number of pairs that are kept.

    Attributes:
        count: the number of pairs that were added.
    """

    def __init__(self, size: int = MAX_PAIRS) -> None:
        self._values = np.empty((size, 2))
        self.count = 0

    def add(self, served: float, shadow: float) -> None:
        """Add a pair; the oldest one is dropped if there is no room."""
        self._values[self.count % len(self._values)] = served, shadow
        self.count += 1

    def columns(self) -> tuple[Floats, Floats]:
        """Return the scores of the served model, and those of the shadow in the same order."""
        kept = self._values[: self.count]
        return kept[:, 0], kept[:, 1]
