"""
Pairwise accuracy with tie calibration: does the metric order two pictures as people do?

Deutsch, Foster and Freitag 2023 (arXiv 2305.14324): acc_eq, and its largest value over the distance below
which the metric counts as tied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact, varied
from scoregate.evaluation.errors import BadColumn

BLOCK = 1 << 20  # pairs that are in memory together
MANTISSA = 38  # bits of a float that a bin ignores: 16,384 bins for each doubling of a distance
BINS = 64 << 14  # from the largest distance down to its 2^64th part; the smaller ones share a bin

NOISE = 1e-9  # of an accuracy: what sums of floats leave

Orders = npt.NDArray[np.int8]
Average = Literal["groups", "pairs"]


@dataclass(frozen=True)
class PairAccuracy:
    """
    The pairs at the best distance *epsilon*; metric values that are no further apart are tied.

    Attributes:
        average: `groups` if accuracies are means over groups with a pair, `pairs` if over all pairs.
        accuracy: the share of pairs that the metric orders, or ties, as people do.
        accuracy_at_0: the same if only equal values are tied.
        epsilon: the smallest distance with that accuracy; 0, or a distance of two values.
        ties_human, ties_metric: tied for this one only.
    """

    average: Average
    accuracy: float
    accuracy_at_0: float
    epsilon: float
    pairs: int
    concordant: int
    discordant: int
    ties_human: int
    ties_metric: int
    ties_both: int


def pair_accuracy(
    metric: Any, human: Any, group: Names | None = None, *, average: Average = "groups"
) -> PairAccuracy:
    """
    Return the accuracy over all pairs, or over those within each *group*, with one epsilon for all.

    Memory does not grow with the number of pairs.  Time does: 5 million take about a second.

    Args:
        average: over the groups, as in the paper and its code, or over the pairs of all groups in one pool.

    Raises:
        BadColumn: a column is constant, or no group has two rows.
    """
    metric, scale = exact(varied(metric, "metric"))
    human, _ = exact(varied(human, "human"))
    groups = np.zeros(len(metric), np.intp) if group is None else coded(group)[1]
    sizes = np.bincount(groups)
    if sizes.max() < 2:
        raise BadColumn("group", "no group has two rows")
    over_groups = average == "groups" and len(sizes) > 1
    of_group = 2 / (sizes * np.maximum(sizes - 1, 1)) if over_groups else np.ones(len(sizes))
    order = np.lexsort((metric, groups))
    rows = metric[order], human[order], groups[order], of_group[groups][order]
    _, at_0 = counts(rows, 0.0)
    epsilon = best_distance(rows)
    number, weight = counts(rows, epsilon)
    concordant, discordant, ties_human, ties_metric, ties_both = map(int, number)
    return PairAccuracy(
        "pairs" if group is None else average,
        float((weight[0] + weight[4]) / weight.sum()),
        float((at_0[0] + at_0[4]) / at_0.sum()),
        epsilon / scale,
        int(number.sum()),
        concordant,
        discordant,
        ties_human,
        ties_metric,
        ties_both,
    )


# Metric, human, group, and the weight of a pair of the group; by group and within it by metric.
Rows = tuple[Floats, Floats, Codes, Floats]


def pairs(rows: Rows) -> Iterator[tuple[Floats, Orders, Floats]]:
    """Yield blocks of pairs: the metric's distance, people's order (1 same, 0 tied, -1 opposite), weight."""
    metric, human, groups, weights = rows
    waiting: list[tuple[Floats, Orders, Floats]] = []
    size = 0
    for lag in range(1, int(np.bincount(groups).max())):
        same = groups[lag:] == groups[:-lag]
        distance = (metric[lag:] - metric[:-lag])[same]
        order = np.sign(human[lag:] - human[:-lag]).astype(np.int8)[same]
        waiting.append((distance, order, weights[lag:][same]))
        size += len(distance)
        if size >= BLOCK:
            yield joined(waiting)
            waiting, size = [], 0
    if waiting:
        yield joined(waiting)


def joined(waiting: list[tuple[Floats, Orders, Floats]]) -> tuple[Floats, Orders, Floats]:
    distances, orders, weights = zip(*waiting, strict=True)
    return np.concatenate(distances), np.concatenate(orders), np.concatenate(weights)


def counts(rows: Rows, epsilon: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """
    Return the numbers of pairs, and the sums of their weights.

    Of each: concordant, discordant, tied for people only, for the metric only, and for both.
    """
    number, weight = np.zeros(5, np.int64), np.zeros(5)
    for distance, order, weights in pairs(rows):
        tied = distance <= epsilon
        equal = order == 0
        kinds = np.where(tied, np.where(equal, 4, 3), np.where(equal, 2, np.where(order > 0, 0, 1)))
        number += np.bincount(kinds, minlength=5)
        weight += np.bincount(kinds, weights, minlength=5)
    return number, weight


def best_distance(rows: Rows) -> float:
    """
    Return the smallest distance with the largest gain over 0.

    A tie by the metric gains a pair that people tie, and loses a concordant one.  A first pass sums gains in
    bins of distances.  A second pass goes pair by pair through those bins in which the sum could exceed
    the best one at a bin's end.
    """
    span = float(np.ptp(rows[0]))
    lowest = max(int(np.float64(span).view(np.int64) >> MANTISSA) - BINS + 1, 0)
    gained, lost = np.zeros(BINS), np.zeros(BINS)
    for distance, order, weights in pairs(rows):
        bins = bins_of(distance, lowest)
        for total, chosen in ((gained, order == 0), (lost, order > 0)):
            used = chosen & (distance > 0)
            total += np.bincount(bins[used], weights[used], minlength=BINS)
    ends = np.cumsum(gained - lost)
    before = ends - gained + lost
    upper = before + gained
    wanted = (gained > 0) & (upper > max(float(ends.max()), 0.0) - NOISE)
    return best_within(rows, wanted, before, lowest)


def bins_of(distance: Floats, lowest: int) -> npt.NDArray[np.int64]:
    """Return the bits of positive floats, which sort like their values."""
    bits = np.ascontiguousarray(distance).view(np.int64) >> MANTISSA
    bins: npt.NDArray[np.int64] = np.maximum(bits - lowest, 0)
    return bins


def best_within(rows: Rows, wanted: npt.NDArray[np.bool_], before: Floats, lowest: int) -> float:
    """Return the smallest best distance, 0 included, within the *wanted* bins."""
    distances, gains = np.zeros(0), np.zeros(0)
    for distance, order, weights in pairs(rows):
        kept = wanted[bins_of(distance, lowest)] & (order >= 0) & (distance > 0)
        every = np.concatenate([distances, distance[kept]])
        gain = np.concatenate([gains, np.where(order[kept] == 0, 1, -1) * weights[kept]])
        distances, places = np.unique(every, return_inverse=True)
        gains = np.bincount(places, weights=gain, minlength=len(distances)).astype(np.float64)
    if not len(distances):
        return 0.0
    bins = bins_of(distances, lowest)
    within = np.cumsum(gains)
    first = np.searchsorted(bins, bins)  # where the bin of each distance begins
    sums = before[bins] + within - within[first] + gains[first]
    best = float(sums.max())
    return float(distances[np.argmax(sums >= best - NOISE)]) if best > NOISE else 0.0
