"""Correlation of a metric with people's ratings."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from scoregate.evaluation.arrays import Codes, Names, coded, floats, varied
from scoregate.evaluation.bootstrap import Sample
from scoregate.evaluation.errors import BadColumn


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
    """Return three correlations.  Raises `BadColumn` for a constant column."""
    metric, human = varied(metric, "metric"), varied(human, "human")
    if len(metric) != len(human):
        raise BadColumn("human", f"{len(human)} values for {len(metric)} of the metric")
    ranks = stats.rankdata(metric), stats.rankdata(human)
    return Correlation(
        len(metric),
        float(np.corrcoef(metric, human)[0, 1]),
        float(np.corrcoef(*ranks)[0, 1]),
        float(stats.kendalltau(metric, human).statistic),
    )


def sample_of(metric: Any, human: Any, cluster: Names) -> Sample:
    """Return the sample of clusters of rows, whose figures are the correlations."""
    metric, human = floats(metric, "metric"), floats(human, "human")
    units, rows = coded(cluster)[1], np.arange(len(metric))

    def figures(times: Codes) -> dict[str, float]:
        drawn = np.repeat(rows, times[units])
        found = correlation(metric[drawn], human[drawn])
        return {"pearson": found.pearson, "spearman": found.spearman, "kendall": found.kendall}

    return Sample(int(units.max()) + 1, figures)
