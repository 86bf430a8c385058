"""
Pairwise accuracy with tie calibration: does the metric order two pictures as people do?

Deutsch, Foster and Freitag 2023 (arXiv 2305.14324): acc_eq, and its largest value over the distance below
which the metric counts as tied.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact, varied
from scoregate.evaluation.errors import BadColumn

BLOCK = 1 << 20  # pairs that are in memory together
MANTISSA = 38  # bits of a float that a bin ignores: 16,384 bins for each doubling of a distance
BINS = 64 << 14  # from the largest distance down to its 2^64th part; the smaller ones share a bin

Orders = npt.NDArray[np.int8]


@dataclass(frozen=True)
class PairAccuracy:
    """
    The pairs at the best distance *epsilon*; metric values that are no further apart are tied.

    Attributes:
        accuracy: the share of pairs that the metric orders, or ties, as people do.
        accuracy_at_0: the same if only equal values are tied.
        epsilon: the smallest distance with that accuracy; 0, or a distance of two values.
        ties_human, ties_metric: tied for this one only.
    """

    accuracy: float
    accuracy_at_0: float
    epsilon: float
    pairs: int
    concordant: int
    discordant: int
    ties_human: int
    ties_metric: int
    ties_both: int


def pair_accuracy(metric: Any, human: Any, group: Names | None = None) -> PairAccuracy:
    """
    Return the accuracy over all pairs, or over those within each *group*, with one epsilon for all.

    Memory does not grow with the number of pairs.  Time does: 5 million take about a second.

    Raises:
        BadColumn: a column is constant, or no group has two rows.
    """
    metric, scale = exact(varied(metric, "metric"))
    human, _ = exact(varied(human, "human"))
    groups = np.zeros(len(metric), np.intp) if group is None else coded(group)[1]
    order = np.lexsort((metric, groups))
    rows = metric[order], human[order], groups[order]
    at_0 = counts(rows, 0.0)
    if not at_0.sum():
        raise BadColumn("group", "no group has two rows")
    epsilon = best_distance(rows)
    concordant, discordant, ties_human, ties_metric, ties_both = map(int, counts(rows, epsilon))
    pairs = int(at_0.sum())
    return PairAccuracy(
        (concordant + ties_both) / pairs,
        float(at_0[0] + at_0[4]) / pairs,
        epsilon / scale,
        pairs,
        concordant,
        discordant,
        ties_human,
        ties_metric,
        ties_both,
    )


Rows = tuple[Floats, Floats, Codes]  # metric, human and group, by group and within it by metric


def pairs(rows: Rows) -> Iterator[tuple[Floats, Orders]]:
    """Yield blocks of pairs: the metric's distance, and people's order (1 same, 0 tied, -1 opposite)."""
    metric, human, groups = rows
    waiting: list[tuple[Floats, Orders]] = []
    size = 0
    for lag in range(1, int(np.bincount(groups).max())):
        same = groups[lag:] == groups[:-lag]
        distance = (metric[lag:] - metric[:-lag])[same]
        order = np.sign(human[lag:] - human[:-lag]).astype(np.int8)[same]
        waiting.append((distance, order))
        size += len(distance)
        if size >= BLOCK:
            yield joined(waiting)
            waiting, size = [], 0
    if waiting:
        yield joined(waiting)


def joined(waiting: list[tuple[Floats, Orders]]) -> tuple[Floats, Orders]:
    distances, orders = zip(*waiting, strict=True)
    return np.concatenate(distances), np.concatenate(orders)


def counts(rows: Rows, epsilon: float) -> npt.NDArray[np.int64]:
    """Count pairs: concordant, discordant, tied for people only, for the metric only, and for both."""
    total = np.zeros(5, np.int64)
    for distance, order in pairs(rows):
        tied = distance <= epsilon
        equal = order == 0
        kinds = np.where(tied, np.where(equal, 4, 3), np.where(equal, 2, np.where(order > 0, 0, 1)))
        total += np.bincount(kinds, minlength=5)
    return total


def best_distance(rows: Rows) -> float:
    """
    Return the smallest distance with the largest gain over 0.

    A tie by the metric gains a pair that people tie, and loses a concordant one.  A first pass sums gains in
    bins of distances.  A second pass goes pair by pair through those bins in which the sum could exceed
    the best one at a bin's end.
    """
    span = float(np.ptp(rows[0]))
    lowest = max(int(np.float64(span).view(np.int64) >> MANTISSA) - BINS + 1, 0)
    gained, lost = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)
    for distance, order in pairs(rows):
        bins = bins_of(distance, lowest)
        gained += np.bincount(bins[(order == 0) & (distance > 0)], minlength=BINS)
        lost += np.bincount(bins[(order > 0) & (distance > 0)], minlength=BINS)
    ends = np.cumsum(gained - lost)
    before = ends - gained + lost
    most, where = int(max(ends.max(), 0)), int(ends.argmax())
    upper = before + gained
    wanted = upper > most
    wanted[: where + 1] |= (upper[: where + 1] == most) & (gained[: where + 1] > 0)
    return best_within(rows, wanted, before, lowest)


def bins_of(distance: Floats, lowest: int) -> npt.NDArray[np.int64]:
    """Return the bits of positive floats, which sort like their values."""
    bits = np.ascontiguousarray(distance).view(np.int64) >> MANTISSA
    bins: npt.NDArray[np.int64] = np.maximum(bits - lowest, 0)
    return bins


def best_within(
    rows: Rows, wanted: npt.NDArray[np.bool_], before: npt.NDArray[np.int64], lowest: int
) -> float:
    """Return the smallest best distance, 0 included, within the *wanted* bins."""
    distances, gains = np.zeros(0), np.zeros(0)
    for distance, order in pairs(rows):
        kept = wanted[bins_of(distance, lowest)] & (order >= 0) & (distance > 0)
        every = np.concatenate([distances, distance[kept]])
        gain = np.concatenate([gains, np.where(order[kept] == 0, 1.0, -1.0)])
        distances, places = np.unique(every, return_inverse=True)
        gains = np.bincount(places, weights=gain, minlength=len(distances)).astype(np.float64)
    if not len(distances):
        return 0.0
    bins = bins_of(distances, lowest)
    within = np.cumsum(gains)
    first = np.searchsorted(bins, bins)  # where the bin of each distance begins
    sums = before[bins] + within - within[first] + gains[first]
    best = int(sums.argmax())
    return float(distances[best]) if sums[best] > 0 else 0.0
