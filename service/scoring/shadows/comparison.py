"""The comparison of two models by pairs of their scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from service.scoring.shadows.pairs import Floats, Pairs
from service.scoring.shadows.threshold import Threshold, kept_rate

MIN_PAIRS = 30  # with fewer there are no figures
BUCKETS = 40
MIN_WIDTH = 1e-6  # of a histogram, relative to its scores
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Distribution:
    """
    The distribution of numbers.

    Attributes:
        quantiles: by share, "0.5" is the median.
    """

    mean: float
    sd: float
    quantiles: dict[str, float]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of both models' scores between the *edges*, of which there is one more."""

    edges: list[float]
    served: list[int]
    shadow: list[int]


@dataclass(frozen=True, slots=True)
class Figures:
    """
    What the pairs show.

    Attributes:
        difference: of the shadow's score minus the served one.
        pearson, spearman: correlations, the second of ranks; None if one model's scores are all equal.
        thresholds: those of the shadow that keep the pass rate.
    """

    served: Distribution
    shadow: Distribution
    difference: Distribution
    pearson: float | None
    spearman: float | None
    histogram: Histogram
    thresholds: list[Threshold]


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    The comparison of one metric.

    Attributes:
        pairs: the number of pairs that it is made from, the last ones.
        caution: why there are no figures; empty if there are.
    """

    pairs: int
    caution: str = ""
    figures: Figures | None = field(default=None)


def compare(pairs: Pairs, thresholds: Sequence[float] = (), *, lower_is_better: bool = False) -> Comparison:
    """
    Compare the models.

    Args:
        thresholds: of the served model; by default its quantiles.
    """
    served, shadow = pairs.columns()
    if len(served) < MIN_PAIRS:
        return Comparison(len(served), f"{len(served)} pairs; figures need {MIN_PAIRS}")
    asked = thresholds or np.unique(np.quantile(served, QUANTILES, method="inverted_cdf")).tolist()
    figures = Figures(
        distribution(served),
        distribution(shadow),
        distribution(shadow - served),
        pearson(served, shadow),
        pearson(ranks(served), ranks(shadow)),
        histogram(served, shadow),
        [kept_rate(served, shadow, each, lower_is_better=lower_is_better) for each in asked],
    )
    return Comparison(len(served), figures=figures)


def distribution(values: Floats) -> Distribution:
    """Return the distribution of *values*, of which there are several."""
    quantiles = np.quantile(values, QUANTILES).tolist()
    named = {f"{share:g}": value for share, value in zip(QUANTILES, quantiles, strict=True)}
    return Distribution(float(values.mean()), float(values.std(ddof=1)), named)


def histogram(served: Floats, shadow: Floats) -> Histogram:
    """Count both models' scores in equal buckets over the range of both."""
    least, most = min(served.min(), shadow.min()), max(served.max(), shadow.max())
    margin = MIN_WIDTH * max(1.0, abs(least), abs(most))
    if most - least < margin:  # scores that differ by rounding only: no buckets fit between them
        least, most = least - margin, most + margin
    edges = np.linspace(least, most, BUCKETS + 1)
    counts = [np.histogram(values, edges)[0].tolist() for values in (served, shadow)]
    return Histogram(edges.tolist(), *counts)


def ranks(values: Floats) -> Floats:
    """Return the ranks of *values* from 1; equal ones share the middle rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle: Floats = np.cumsum(counts) - (counts - 1) / 2
    return middle[inverse]


def pearson(one: Floats, other: Floats) -> float | None:
    """Return Pearson's correlation; None if all values of one are equal."""
    if not (np.ptp(one) and np.ptp(other)):
        return None
    return float(np.clip(np.corrcoef(one, other)[0, 1], -1, 1))
