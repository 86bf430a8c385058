"""
Drift: whether the scores of a metric are distributed as they were in a time of reference.

The population stability index compares shares of bins.  The bins end at the deciles of the reference; a value
on which several deciles fall has a bin of its own.  With r and c values of the reference and of later rows in
a bin, of R and C in all B bins, and p = (r + 0.5) / (R + B / 2), q = (c + 0.5) / (C + B / 2):

    PSI = sum of (q - p) ln(q / p) over the bins
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp

from scoregate.evaluation.arrays import Codes, Floats

MIN_REFERENCE = 10  # values, for ten parts
ADDED_COUNT = 0.5  # with it, an empty bin has a logarithm, too
EXACT = 100  # values on each side up to which the p-value is exact


class Bins:
    """Bins by the deciles of *reference*, of which there are ten if no values are tied."""

    def __init__(self, reference: Floats) -> None:
        deciles = np.quantile(reference, np.arange(1, 10) / 10)
        self.edges, times = np.unique(deciles, return_counts=True)
        self.tied = times > 1
        self._before = np.concatenate([[0], np.cumsum(self.tied)])
        self.count = len(self.edges) + 1 + int(self.tied.sum())

    def counts(self, values: Floats) -> Codes:
        """Return how many values are in each bin; one at an edge is in the bin below it."""
        below = np.searchsorted(self.edges, values, "left")
        last = np.minimum(below, len(self.edges) - 1)
        alone = (values == self.edges[last]) & self.tied[last]
        return np.bincount(below + self._before[below] + alone, minlength=self.count)


def psi(reference: Codes, later: Codes) -> float:
    """Return the population stability index, from the numbers of values in the bins."""
    p, q = ((each + ADDED_COUNT) / (each.sum() + ADDED_COUNT * len(each)) for each in (reference, later))
    return float(((q - p) * np.log(q / p)).sum())


@dataclass(frozen=True)
class ScoreDrift:
    """
    How far later scores differ from those of the reference.

    Attributes:
        psi: the population stability index; None if there are too few values.
        ks: the statistic of Kolmogorov and Smirnov, the largest difference of the distributions.
        p: two-sided; None if two values are equal, since its distribution is that of continuous values.
        note: why something is None.
    """

    psi: float | None = None
    ks: float | None = None
    p: float | None = None
    note: str = ""


def drift(reference: Floats, later: Floats) -> ScoreDrift:
    """Compare later scores with those of the reference."""
    if len(reference) < MIN_REFERENCE:
        return ScoreDrift(note=f"fewer than {MIN_REFERENCE} scores in the reference")
    if not len(later):
        return ScoreDrift(note="no score after the reference")
    bins = Bins(reference)
    index = psi(bins.counts(reference), bins.counts(later))
    exact = max(len(reference), len(later)) <= EXACT
    found = ks_2samp(reference, later, method="exact" if exact else "asymp")
    together = np.concatenate([reference, later])
    tied = len(np.unique(together)) < len(together)
    return ScoreDrift(
        index,
        float(found.statistic),
        None if tied else float(found.pvalue),
        "no p-value: equal scores" if tied else "",
    )
