"""
The meta-metrics of T2IscoreScore (Saxon et al. 2024, section 3), as the released code computes them today.

The scores of a graph are by node: its level, which is the number of errors, and the scores of its pictures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from service.metrics.replay import correlation

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
    How well the scores order pictures by their errors: 1 is best, 0 is chance, -1 is the wrong way round.

    Minus Spearman's rho of level and score, over every walk that takes one node of each level; the mean of
    all walks, each weighted by its pictures.  0 for a walk whose scores are all equal.
    """
    levels = sorted({node.level for node in nodes})
    walks = list(product(*([node for node in nodes if node.level == level] for level in levels)))
    found = [spearman(*points(walk)) for walk in walks]
    weights = [sum(len(node.scores) for node in walk) for walk in walks]
    return -float(np.average(found, weights=weights))


def points(walk: Sequence[Scored]) -> tuple[list[float], list[float]]:
    """Level and score of each picture."""
    pairs = [(float(node.level), score) for node in walk for score in node.scores]
    return [level for level, _ in pairs], [score for _, score in pairs]


def separation(nodes: Sequence[Scored], apart: int | None = None) -> float:
    """
    How far the scores of pictures with different numbers of errors lie apart: 1 where they never overlap.

    The mean Kolmogorov-Smirnov statistic of all pairs of nodes of different levels.  It does not know which
    of both is better.

    Args:
        apart: leave out nodes whose levels are further apart; 1 has neighbours alone.
    """
    pairs = [
        (one, other)
        for one, other in combinations(nodes, 2)
        if one.level != other.level and (apart is None or abs(one.level - other.level) <= apart)
    ]
    return float(np.mean([kolmogorov_smirnov(one.scores, other.scores) for one, other in pairs]))


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rho; 0 where one side is constant."""
    try:
        return correlation.spearman(one, other)
    except ValueError:
        return 0.0


def kolmogorov_smirnov(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest distance of the two empirical distribution functions."""
    values = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(sample), values, side="right") / len(sample) for sample in (one, other)]
    return float(np.max(np.abs(below[0] - below[1])))


def estimate(
    graphs: Sequence[Sequence[Scored]], measure: Callable[[Sequence[Scored]], float], seed: int
) -> Estimate:
    """The mean of *measure* over graphs; the interval is that of means over graphs drawn again."""
    values = np.array([measure(nodes) for nodes in graphs])
    chance = np.random.default_rng(seed)
    means = values[chance.integers(0, len(values), (RESAMPLED, len(values)))].mean(axis=1)
    low, high = np.percentile(means, INTERVAL)
    return Estimate(float(values.mean()), float(low), float(high))
