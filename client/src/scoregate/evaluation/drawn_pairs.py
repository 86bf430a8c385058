"""Accuracies over pairs of rows in a bootstrap: the weight of a pair is how often its clusters are drawn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact, floats
from scoregate.evaluation.bootstrap import Sample
from scoregate.evaluation.ties import Average, Orders

MOST = 1 << 24  # pairs in memory: of 5,793 rows without groups

Weights = Callable[[Codes], tuple[Floats, float]]  # of a drawing: how often each cluster is in it


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

    def weights(times: Codes) -> tuple[Floats, float]:
        factors = np.append(times, 1).astype(np.float64)
        each = factors[first] * factors[second]
        if average == "groups":
            sizes = np.bincount(of, each, minlength=len(home))
            copies = factors[home] * (sizes > 0)
            each *= (copies / np.where(sizes > 0, sizes, 1))[of]
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
