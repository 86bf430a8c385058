"""A mean and how sure it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scoregate.evaluation import bootstrap
from scoregate.evaluation.arrays import coded

TIMES = 1000  # that items are drawn again
SEED = 0


@dataclass(frozen=True)
class Interval:
    """A mean of *n* values, and the 95 % bootstrap interval over items; None with one item."""

    mean: float
    low: float | None
    high: float | None
    n: int


def interval(values: Sequence[float], items: Sequence[str]) -> Interval:
    """
    Return the mean of one value or more, with a bootstrap interval (percentiles).

    Items are drawn, each with all of its values: pictures of one prompt are not independent of each other.
    """
    names, codes = coded(items)
    sample = bootstrap.means({"mean": (codes, values)}, len(names))
    low, high = bootstrap.interval(bootstrap.drawn(sample, TIMES, SEED)).get("mean", (None, None))
    return Interval(float(np.mean(values)), low, high, len(values))
