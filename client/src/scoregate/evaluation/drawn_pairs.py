"""Accuracies over pairs of rows in a bootstrap: the weight of a pair is how often its rows are drawn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact, floats
from scoregate.evaluation.bootstrap import Sample, means
from scoregate.evaluation.ties import Orders

MOST = 1 << 24  # pairs in memory: of 5,793 rows without groups

Figures = Callable[[Codes], dict[str, float]]  # of a drawing: how often each row, or each group, is in it


class Pairs(NamedTuple):
    """Pairs by the metric's *distance*, with people's order (1 same, 0 tied, -1 opposite)."""

    first: npt.NDArray[np.int32]
    second: npt.NDArray[np.int32]
    distance: Floats
    order: Orders

    def of(self, chosen: npt.NDArray[Any]) -> "Pairs":
        """Return the *chosen* pairs: a mask or places."""
        return Pairs(self.first[chosen], self.second[chosen], self.distance[chosen], self.order[chosen])


def pair_accuracies(metric: Any, human: Any, group: Names | None = None) -> Figures:
    """
    Return a function that computes the accuracies of `pair_accuracy` on a drawing, with its own epsilon.

    A copy of a row is no pair with that row, and each copy of a group is a group of its own.  The function
    returns nothing for a drawing without pairs.
    """
    groups = None if group is None else coded(group)[1]
    pairs = pairs_of(metric, human, groups)
    pairs_in = None if groups is None else np.bincount(groups[pairs.first], minlength=groups.max() + 1)
    tied, distance = pairs.order == 0, pairs.distance
    used = pairs.of(tied | ((pairs.order > 0) & (distance > 0)))  # the others gain and lose nothing
    gains = np.where(used.order == 0, 1, -1).astype(np.int32)  # of a tie by the metric
    ends = np.flatnonzero(np.diff(used.distance, append=np.inf) > 0)  # the last pair of each distance
    zeros = int(np.searchsorted(used.distance, 0.0, "right"))
    units = used.first if groups is None else groups[used.first]

    def figures(times: Codes) -> dict[str, float]:
        if pairs_in is None:
            total = (int(times.sum()) ** 2 - int((times**2).sum())) // 2
        else:
            total = int(pairs_in @ times)
        if not total:
            return {}
        weights = times.astype(np.int32)
        gained = weights.take(units) * gains
        if groups is None:
            gained *= weights.take(used.second)
        ordered = -int(gained[gains < 0].sum(dtype=np.int64))
        sums = gained.cumsum(dtype=np.int64)
        at_0 = int(sums[zeros - 1]) if zeros else 0
        best = int(sums[ends].max(initial=at_0))
        return {"accuracy": (ordered + best) / total, "accuracy_at_0": (ordered + at_0) / total}

    return figures


def preferences(metric: Any, human: Any, group: Names) -> Sample:
    """Return the sample of groups whose figures are the accuracies of `preference`, as `pair_accuracies`."""
    names, groups = coded(group)
    pairs = pairs_of(metric, human, groups)
    pairs = pairs.of(pairs.order != 0)
    units, tied = groups[pairs.first], pairs.distance == 0
    right = ~tied & (pairs.order > 0)
    return means({"accuracy": (units, right), "accuracy_ties_half": (units, right + tied / 2)}, len(names))


def pairs_of(metric: Any, human: Any, groups: Codes | None) -> Pairs:
    """Return the pairs of rows, all or within groups; equal differences are equal as in `pair_accuracy`."""
    (metric, _), (human, _) = exact(floats(metric, "metric")), exact(floats(human, "human"))
    within = np.zeros(len(metric), np.intp) if groups is None else groups
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
