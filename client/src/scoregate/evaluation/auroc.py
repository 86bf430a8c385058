"""The area under the ROC curve: how likely a right picture has a higher score than a wrong one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, floats, varied, without_noise
from scoregate.evaluation.bootstrap import Sample
from scoregate.evaluation.errors import BadColumn


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
        BadColumn: all scores or all labels are the same, or a label is something else.
    """
    metric, label = varied(metric, "metric"), floats(label, "label")
    if not np.isin(label, (0, 1)).all():
        raise BadColumn("label", "a label is 0 or 1")
    good, bad = metric[label == 1], metric[label == 0]
    if not (len(good) and len(bad)):
        raise BadColumn("label", f"all {len(label)} labels are {label[0]:g}")
    ranks = rankdata(metric)[label == 1].sum() - len(good) * (len(good) + 1) / 2
    ordered = np.sort(bad)
    tied = (np.searchsorted(ordered, good, "right") - np.searchsorted(ordered, good)).sum()
    return Auroc(float(ranks / (len(good) * len(bad))), len(metric), len(good), len(bad), int(tied))


def sample_of(metric: Any, label: Any, cluster: Names) -> Sample:
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
    shares, metric = [], without_noise(metric)
    thresholds = np.append(np.inf, np.unique(metric)[::-1])
    for kind in (0, 1):
        scores = np.sort(metric[label == kind])
        shares.append(1 - np.searchsorted(scores, thresholds) / len(scores))
    return shares[0], shares[1]
