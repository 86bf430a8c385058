"""A metric against people: correlation with ratings, area under the ROC curve, and best of N pictures."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.errors import ColumnError, InputError
from scoregate.evaluation.arrays import Codes, Floats, Names, average_ranks, coded, floats, ranks_of_places
from scoregate.evaluation.bootstrap import Sample

MAX_CELLS = 20_000  # cells of a table, up to which it is faster


@dataclass(frozen=True)
class Correlation:
    """
    Attributes:
        pearson: how well a line describes the two, -1 to 1.
        spearman: Pearson's of their ranks, ties at the middle rank.
        kendall: tau-b, from pairs in the same order and in the opposite one, corrected for ties.
    """

    n: int
    pearson: float
    spearman: float
    kendall: float


def correlation(metric: Any, human: Any) -> Correlation:
    """Return three correlations.  Raises `ColumnError` for a constant column."""
    metric, human = floats(metric, "metric", varied=True), floats(human, "human", varied=True)
    if len(metric) != len(human):
        raise ColumnError("human", f"{len(human)} values for {len(metric)} of the metric")
    of_metric, of_human = (np.unique(column, return_inverse=True)[1] for column in (metric, human))
    return Correlation(
        len(metric),
        float(np.corrcoef(metric, human)[0, 1]),
        float(np.corrcoef(ranks_of_places(of_metric), ranks_of_places(of_human))[0, 1]),
        kendall(of_metric, of_human),
    )


def kendall(metric: Codes, human: Codes) -> float:
    """
    Return tau-b from places.

    A table of how often each two places meet has few cells where people's ratings have few values, and
    is faster than SciPy's function, most of whose time goes into a p-value.
    """
    rows, width = int(metric.max()) + 1, int(human.max()) + 1
    if rows * width > MAX_CELLS:
        return float(of_scipy()(metric, human).statistic)
    table = np.bincount(metric * width + human, minlength=rows * width).reshape(rows, width)
    pairs = math.comb(len(metric), 2)
    apart = [pairs - int((each * (each - 1) // 2).sum()) for each in (table.sum(1), table.sum(0))]
    below = table.cumsum(0).cumsum(1)
    same = int((table[1:, 1:] * below[:-1, :-1]).sum())
    tied_in_both = int((table * (table - 1) // 2).sum())
    # Pairs that are tied in one column alone are neither in the same order nor in the opposite one.
    opposite = apart[0] + apart[1] - pairs + tied_in_both - same
    tau = (same - opposite) / np.sqrt(apart[0]) / np.sqrt(apart[1])
    return float(min(1.0, max(-1.0, tau)))


def of_scipy() -> Any:
    """Return SciPy's tau-b, whose import takes a second.  Raises `InputError` if it is missing."""
    try:
        from scipy import stats
    except ImportError as exc:
        raise InputError(
            "Kendall's tau of so many values needs SciPy: pip install './client[evaluate]' in a checkout of"
            " Scoregate"
        ) from exc
    return stats.kendalltau


def correlation_sample(metric: Any, human: Any, cluster: Names) -> Sample:
    """Return the sample of clusters of rows, whose figures are the correlations."""
    metric, human = floats(metric, "metric"), floats(human, "human")
    units, rows = coded(cluster)[1], np.arange(len(metric))

    def figures(times: Codes) -> dict[str, float]:
        drawn = np.repeat(rows, times[units])
        found = correlation(metric[drawn], human[drawn])
        return {"pearson": found.pearson, "spearman": found.spearman, "kendall": found.kendall}

    return Sample(int(units.max()) + 1, figures)


@dataclass(frozen=True)
class Auroc:
    """A tie of a right and a wrong picture counts half; *tied* is the number of such pairs."""

    auroc: float
    n: int
    positive: int
    negative: int
    tied: int


def auroc(metric: Any, label: Any) -> Auroc:
    """
    Return the area under the ROC curve.

    Args:
        label: 1 for a right picture, 0 for a wrong one.

    Raises:
        ColumnError: all scores or all labels are the same, or a label is something else.
    """
    metric, label = floats(metric, "metric", varied=True), floats(label, "label")
    if not np.isin(label, (0, 1)).all():
        raise ColumnError("label", "a label is 0 or 1")
    good, bad = metric[label == 1], metric[label == 0]
    if not (len(good) and len(bad)):
        raise ColumnError("label", f"all {len(label)} labels are {label[0]:g}")
    ranks = average_ranks(metric)[label == 1].sum() - len(good) * (len(good) + 1) / 2
    ordered = np.sort(bad)
    tied = (np.searchsorted(ordered, good, "right") - np.searchsorted(ordered, good)).sum()
    return Auroc(float(ranks / (len(good) * len(bad))), len(metric), len(good), len(bad), int(tied))


def auroc_sample(metric: Any, label: Any, cluster: Names) -> Sample:
    """Return the sample of clusters of pictures, whose figure is the area."""
    codes = np.unique(floats(metric, "metric"), return_inverse=True)[1]
    units, good = coded(cluster)[1], np.asarray(label, dtype=np.float64)

    def figures(times: Codes) -> dict[str, float]:
        each = times[units]
        above = np.bincount(codes, each * good, minlength=codes.max() + 1)
        below = np.bincount(codes, each * (1 - good), minlength=len(above))
        pairs = float(above.sum() * below.sum())
        better = float(above @ (below.cumsum() - below / 2))
        return {"auroc": better / pairs} if pairs else {}

    least = min(len(np.unique(units[good == kind])) for kind in (0, 1))
    return Sample(int(units.max()) + 1, figures, {"auroc": least})


def roc(metric: Floats, label: Floats) -> tuple[Floats, Floats]:
    """Return the shares of wrong and of right pictures at or above each threshold, from 0 to 1."""
    shares, metric = [], floats(metric, "metric")
    thresholds = np.append(np.inf, np.unique(metric)[::-1])
    for kind in (0, 1):
        scores = np.sort(metric[label == kind])
        shares.append(1 - np.searchsorted(scores, thresholds) / len(scores))
    return shares[0], shares[1]


@dataclass(frozen=True)
class BestOf:
    """Mean ratings of the picks by N, over *groups* with as many pictures as the largest one."""

    groups: int
    means: dict[int, float]


def best_of(metric: Any, human: Any, group: Names) -> BestOf:
    """
    Return the mean rating of the picks for each N, over all choices of N pictures of a group.

    Equal scores are picked equally often.  Groups have the same weight, and smaller ones are left out, so
    that all N are about the same pictures.

    Raises:
        ColumnError: no group has two pictures.
    """
    metric, human = floats(metric, "metric"), floats(human, "human")
    names, codes = coded(group)
    sizes = np.bincount(codes, minlength=len(names))
    most = int(sizes.max())
    if most < 2:
        raise ColumnError("group", "no group has two pictures")
    groups, picked = np.flatnonzero(sizes == most), []
    for code in groups:
        rows = codes == code
        _, places, equal = np.unique(metric[rows], return_inverse=True, return_counts=True)
        ratings = np.bincount(places, human[rows]) / equal
        ends = list(zip(np.cumsum(equal).tolist(), equal.tolist(), strict=True))
        # How often the best of N has each score: it is among those up to it, and not among those below it.
        shares = [
            [(math.comb(upto, n) - math.comb(upto - count, n)) / math.comb(most, n) for upto, count in ends]
            for n in range(1, most + 1)
        ]
        picked.append(np.array(shares) @ ratings)
    means = {n: float(value) for n, value in enumerate(np.mean(picked, axis=0), 1)}
    return BestOf(len(groups), means)
