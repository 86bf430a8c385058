"""
The meta-metrics of T2IscoreScore (Saxon et al. 2024, section 3), as in the released code today.

The scores of a graph are grouped by node: its level, which is the number of errors, and its pictures' scores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from scoregate.evaluation.ts2 import of_current
from scoregate.evaluation.ts2 import separation as kolmogorov_smirnov

RESAMPLED = 1_000  # times
INTERVAL = (2.5, 97.5)  # percentiles


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a node's pictures."""

    level: int
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over graphs, with a 95 % interval from resampled graphs."""

    value: float
    low: float
    high: float


def rank(nodes: Sequence[Scored]) -> float:
    """
    Return the correlation of scores and errors: 1 is best, 0 is chance, -1 is reversed.

    Same as `scoregate evaluate ts2 --version current` of one graph.
    """
    named = {f"{node.level}-{place}": np.array(node.scores) for place, node in enumerate(nodes)}
    return of_current("", named)[0]


def separation(nodes: Sequence[Scored], apart: int | None = None) -> float:
    """
    Return the separation of scores with different numbers of errors: 1 if they never overlap.

    The mean Kolmogorov-Smirnov statistic of all pairs of nodes of different levels, in either direction.

    Args:
        apart: ignore nodes whose levels differ by more; 1 compares only neighbours.
    """
    pairs = [
        (np.array(one.scores), np.array(other.scores))
        for one, other in combinations(nodes, 2)
        if one.level != other.level and (apart is None or abs(one.level - other.level) <= apart)
    ]
    return float(np.mean([kolmogorov_smirnov(*pair) for pair in pairs]))


def estimate(
    graphs: Sequence[Sequence[Scored]], measure: Callable[[Sequence[Scored]], float], seed: int
) -> Estimate:
    """Return the mean of *measure* over graphs, with a bootstrap interval."""
    values = np.array([measure(nodes) for nodes in graphs])
    chance = np.random.default_rng(seed)
    means = values[chance.integers(0, len(values), (RESAMPLED, len(values)))].mean(axis=1)
    low, high = np.percentile(means, INTERVAL)
    return Estimate(float(values.mean()), float(low), float(high))
