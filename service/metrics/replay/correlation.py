"""Rank correlations, with ties."""

import math
from collections.abc import Sequence

import numpy as np


def ranks(values: Sequence[float]) -> np.ndarray:
    """The ranks from 1; equal values share the mean of theirs."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: np.ndarray = (last - (counts - 1) / 2)[group]
    return means


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Pearson's correlation of the ranks.  Raises `ValueError` where one side never varies."""
    return _cosine(ranks(one), ranks(other))


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """
    Kendall's tau-b: (concordant - discordant) / √(pairs not tied in one · pairs not tied in the other).

    Time O(n²), memory O(n).

    Raises:
        ValueError: one side never varies.
    """
    a, b = ranks(one), ranks(other)
    agree = ordered_a = ordered_b = 0
    for i in range(1, len(a)):
        order_a, order_b = np.sign(a[i] - a[:i]), np.sign(b[i] - b[:i])
        agree += int(order_a @ order_b)
        ordered_a += int(np.count_nonzero(order_a))
        ordered_b += int(np.count_nonzero(order_b))
    if not ordered_a or not ordered_b:
        raise ValueError("there is no correlation of values that are all the same")
    return agree / math.sqrt(ordered_a * ordered_b)


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    """Of two lists around their means."""
    one, other = one - one.mean(), other - other.mean()
    scale = math.sqrt((one @ one) * (other @ other))
    if not scale:
        raise ValueError("there is no correlation of values that are all the same")
    return float(one @ other) / scale
