"""
Pairs of pictures: does the metric order two pictures as people do?

Pairwise accuracy with tie calibration is that of Deutsch, Foster and Freitag 2023 (arXiv 2305.14324): acc_eq,
and its largest value over the distance below which the metric counts as tied.  Binary accuracy is the share
of pairs in which the metric prefers the picture that people prefer.  In a bootstrap, the weight of a pair is
the number of drawings of its clusters.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact, floats
from scoregate.evaluation.bootstrap import Sample

BLOCK = 1 << 20  # pairs that are in memory together
MANTISSA = 38  # bits of a float that a bin ignores: 16,384 bins for each doubling of a distance
BINS = 64 << 14  # from the largest distance down to its 2^64th part; the smaller ones share a bin

NOISE = 1e-9  # sums of floats round an accuracy by less

Orders = npt.NDArray[np.int8]
Average = Literal["groups", "pairs"]

# Metric, human, group, and the weight of a pair of the group; by group and within it by metric.
PairColumns = tuple[Floats, Floats, Codes, Floats]
MAX_PAIRS = 1 << 24  # pairs in memory: of 5,793 rows without groups
Weights = Callable[[Codes], tuple[Floats, float]]  # a drawing gives how often each cluster is in it


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
        ColumnError: a column is constant, or no group has two rows.
    """
    metric, scale = exact(floats(metric, "metric", varied=True))
    human, _ = exact(floats(human, "human", varied=True))
    groups = np.zeros(len(metric), np.intp) if group is None else coded(group)[1]
    sizes = np.bincount(groups)
    if sizes.max() < 2:
        raise ColumnError("group", "no group has two rows")
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


def pairs(rows: PairColumns) -> Iterator[tuple[Floats, Orders, Floats]]:
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
            yield tuple(map(np.concatenate, zip(*waiting, strict=True)))  # type: ignore[misc]
            waiting, size = [], 0
    if waiting:
        yield tuple(map(np.concatenate, zip(*waiting, strict=True)))  # type: ignore[misc]


def counts(rows: PairColumns, epsilon: float) -> tuple[npt.NDArray[np.int64], Floats]:
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


def best_distance(rows: PairColumns) -> float:
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


def best_within(rows: PairColumns, wanted: npt.NDArray[np.bool_], before: Floats, lowest: int) -> float:
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


@dataclass(frozen=True)
class Preference:
    """
    Over pairs of pictures of the same group between which people differ.

    Attributes:
        average: `pairs` if the accuracies are of all pairs, or `groups` if they are means over groups.
        accuracy: the share that the metric orders as people do; equal scores are wrong.
        accuracy_ties_half: the same with half a point for equal scores.
        ties_human: pairs that people do not prefer either of; they are in no accuracy.
        single: groups with one picture.
    """

    average: Average
    accuracy: float
    accuracy_ties_half: float
    pairs: int
    correct: int
    wrong: int
    ties_metric: int
    ties_human: int
    groups: int
    single: int


def preference(metric: Any, human: Any, group: Names, *, average: Average = "pairs") -> Preference:
    """
    Return the accuracy over pairs of pictures.

    Args:
        human: any number that is larger for the better picture, such as 1 and 0.
        group: the pictures to compare with each other, for example those of one prompt.
        average: over the pairs of all groups, or over the groups with such a pair.

    Raises:
        ColumnError: a column is constant, or no group has two pictures that people rated differently.
    """
    (metric, _), (human, _) = (
        exact(floats(metric, "metric", varied=True)),
        exact(floats(human, "human", varied=True)),
    )
    names, groups = coded(group)
    apart = preferred(human, groups)
    if not apart.any():
        raise ColumnError("group", "no group has two pictures that people rated differently")
    of_group = np.ones(len(names)) if average == "pairs" else 1 / np.where(apart, apart, np.inf)
    order = np.lexsort((metric, groups))
    rows = metric[order], human[order], groups[order], of_group[groups][order]
    number, weight = counts(rows, 0.0)
    right, wrong, human_only, tied, both = map(int, number)
    total = weight[[0, 1, 3]].sum()
    return Preference(
        average,
        float(weight[0] / total),
        float((weight[0] + weight[3] / 2) / total),
        right + wrong + tied,
        right,
        wrong,
        tied,
        human_only + both,
        len(names),
        int((np.bincount(groups) == 1).sum()),
    )


def preferred(human: Floats, groups: Codes) -> Floats:
    """Return the number of pairs of each group that people rated differently."""
    sizes = np.bincount(groups)
    cells, equal = np.unique(np.stack([groups, human]), axis=1, return_counts=True)
    tied = np.bincount(cells[0].astype(np.intp), equal * (equal - 1) / 2)
    found: Floats = sizes * (sizes - 1) / 2 - tied
    return found


class Pairs(NamedTuple):
    """Pairs by the metric's *distance*, with people's order (1 same, 0 tied, -1 opposite)."""

    first: npt.NDArray[np.int32]
    second: npt.NDArray[np.int32]
    distance: Floats
    order: Orders

    def of(self, chosen: npt.NDArray[Any]) -> "Pairs":
        """Return the *chosen* pairs: a mask or places."""
        return Pairs(self.first[chosen], self.second[chosen], self.distance[chosen], self.order[chosen])


def pair_accuracies(
    metric: Any,
    human: Any,
    group: Names | None = None,
    *,
    cluster: Names | None = None,
    average: Average = "groups",
) -> Sample:
    """
    Return the sample of clusters whose figures are the accuracies of `pair_accuracy`, with their own epsilon.

    Args:
        cluster: the rows that are drawn together; by default those of a *group*, or each row by itself.
    """
    units, groups = drawn_together(len(floats(metric, "metric")), group, cluster)
    pairs = pairs_of(metric, human, groups)
    weights = weighted(pairs, groups, units, average)
    apart, equal = pairs.distance > 0, pairs.order == 0
    right_at_0 = np.where(apart, pairs.order > 0, equal).astype(np.float64)
    # A tie by the metric gains a pair that people tie, and loses a concordant one.
    gains = (apart * np.where(equal, 1, np.where(pairs.order > 0, -1, 0))).astype(np.float64)
    starts = np.flatnonzero(np.diff(pairs.distance, prepend=-np.inf) > 0)  # the first pair of each distance

    def figures(times: Codes) -> dict[str, float]:
        each, total = weights(times)
        if not total:
            return {}
        at_0 = float((each * right_at_0).sum())
        best = float(np.add.reduceat(each * gains, starts).cumsum().max(initial=0.0))
        return {"accuracy": (at_0 + best) / total, "accuracy_at_0": at_0 / total}

    count = int(units.max()) + 1
    return Sample(count, figures, dict.fromkeys(("accuracy", "accuracy_at_0"), count))


def preferences(
    metric: Any,
    human: Any,
    group: Names,
    *,
    cluster: Names | None = None,
    average: Average = "pairs",
) -> Sample:
    """Return the sample of clusters whose figures are those of `preference`, as `pair_accuracies`."""
    units, groups = drawn_together(len(floats(metric, "metric")), group, cluster)
    pairs = pairs_of(metric, human, groups)
    pairs = pairs.of(pairs.order != 0)
    weights = weighted(pairs, groups, units, average)
    tied = pairs.distance == 0
    right, half = (~tied & (pairs.order > 0)).astype(np.float64), tied / 2

    def figures(times: Codes) -> dict[str, float]:
        each, total = weights(times)
        if not total:
            return {}
        found = float(each @ right)
        return {"accuracy": found / total, "accuracy_ties_half": (found + float(each @ half)) / total}

    count = len(np.unique(units[np.append(pairs.first, pairs.second)]))
    shares = dict.fromkeys(("accuracy", "accuracy_ties_half"), count)
    return Sample(int(units.max()) + 1, figures, shares)


def drawn_together(rows: int, group: Names | None, cluster: Names | None) -> tuple[Codes, Codes]:
    """Return the cluster and the group of each row."""
    groups = np.zeros(rows, np.intp) if group is None else coded(group)[1]
    if cluster is not None:
        return coded(cluster)[1], groups
    return (np.arange(rows) if group is None else groups), groups


def weighted(pairs: Pairs, groups: Codes, units: Codes, average: Average) -> Weights:
    """
    Return a function that computes each pair's weight in a drawing, and the sum of all weights.

    The copies of a cluster are not compared with each other.  So the weight of a pair within a cluster is
    the number of its copies, and that of a pair of two clusters is the product of both numbers.  Each copy
    of a group that lies in one cluster is a group of its own.
    """
    first, second, of = units[pairs.first], units[pairs.second], groups[pairs.first]
    once = int(units.max()) + 1  # the place of a factor that is always 1
    second = np.where(first == second, once, second)
    home = homes(groups, units, once)
    by_group = average == "groups" and len(home) > 1  # the mean over one group is that of all its pairs

    def weights(times: Codes) -> tuple[Floats, float]:
        factors = np.append(times, 1).astype(np.float64)
        each = factors.take(first) * factors.take(second)
        if by_group:
            sizes = np.bincount(of, each, minlength=len(home))
            copies = factors[home] * (sizes > 0)
            each *= (copies / np.where(sizes > 0, sizes, 1)).take(of)
        return each, float(each.sum())

    return weights


def homes(groups: Codes, units: Codes, several: int) -> Codes:
    """Return the cluster that each group lies in, or *several*."""
    lowest = np.full(int(groups.max()) + 1, several)
    np.minimum.at(lowest, groups, units)
    crossing = np.unique(groups[units != lowest[groups]])
    lowest[crossing] = several
    return lowest


def pairs_of(metric: Any, human: Any, within: Codes) -> Pairs:
    """Return the pairs of rows within groups; equal differences are equal as in `pair_accuracy`."""
    (metric, _), (human, _) = exact(floats(metric, "metric")), exact(floats(human, "human"))
    rows = np.lexsort((metric, within)).astype(np.int32)
    within = within[rows]
    found = [
        np.stack([rows[:-lag], rows[lag:]])[:, within[lag:] == within[:-lag]]
        for lag in range(1, int(np.bincount(within).max()))
    ]
    first, second = np.concatenate([np.zeros((2, 0), np.int32), *found], axis=1)
    distance = metric[second] - metric[first]
    order = np.sign(human[second] - human[first]).astype(np.int8)
    return Pairs(first, second, distance, order).of(np.argsort(distance, kind="stable"))
