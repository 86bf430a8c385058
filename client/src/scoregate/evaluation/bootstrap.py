"""Percentile bootstrap: how far figures vary over units that are drawn again, and how they differ."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from scoregate.evaluation.arrays import Codes, Floats
from scoregate.evaluation.errors import BadColumn

BAND = (2.5, 97.5)  # percentiles

Figures = Mapping[str, float]
Drawn = dict[str, Floats]  # a figure's values, one for each drawing; NaN if it is not defined there


class Sample(NamedTuple):
    """
    Units that are drawn with replacement.

    Attributes:
        units: their number.
        figures: computes the figures of a drawing from the number of times that each unit is in it.
    """

    units: int
    figures: Callable[[Codes], Figures]

    @property
    def whole(self) -> Figures:
        """The figures with each unit once."""
        return self.figures(np.ones(self.units, np.intp))


@dataclass(frozen=True)
class Difference:
    """Figure of *a* minus that of *b* on the same units: 95 % interval and two-sided p-value."""

    a: str
    b: str
    figure: str
    difference: float
    interval: tuple[float, float]
    p: float


def means(values: Mapping[str, tuple[Codes, Any]], units: int) -> Sample:
    """
    Return the sample whose figures are means of *values*, which have the unit of each value before them.

    A figure whose values are all of one unit is left out: it would be the same in all drawings.
    """
    several = {name: each for name, each in values.items() if len(np.unique(each[0])) > 1}
    sums = {name: np.bincount(of, each, minlength=units) for name, (of, each) in several.items()}
    counts = {name: np.bincount(of, minlength=units) for name, (of, _) in several.items()}

    def figures(times: Codes) -> Figures:
        drawn = {name: int(each @ times) for name, each in counts.items()}
        return {name: float(sums[name] @ times) / count for name, count in drawn.items() if count}

    return Sample(units, figures)


def drawn(sample: Sample, times: int, seed: int) -> Drawn:
    """
    Return the figures of *times* drawings; none if there is one unit.

    With the same seed, as many units give the same drawings, so that two metrics are compared in pairs.
    """
    random = np.random.default_rng(seed)
    found: list[Figures] = []
    for _ in range(times if sample.units > 1 else 0):
        chosen = random.integers(sample.units, size=sample.units)
        try:
            found.append(sample.figures(np.bincount(chosen, minlength=sample.units)))
        except BadColumn:  # for example, all rows drawn have the same rating
            found.append({})
    names = dict.fromkeys(name for figures in found for name in figures)
    return {name: np.array([figures.get(name, np.nan) for figures in found]) for name in names}


def interval(values: Drawn) -> dict[str, tuple[float, float]]:
    """Return the middle 95 % of each figure."""
    return {name: band(each[~np.isnan(each)]) for name, each in values.items()}


def band(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Return the ends of the middle 95 %."""
    low, high = np.percentile(values, BAND)
    return float(low), float(high)


def differences(found: Mapping[str, tuple[Figures, Drawn]]) -> list[Difference]:
    """
    Return the differences of each two metrics, from the figures of each and its drawings.

    P counts the drawings on the other side of 0, plus one.
    """
    rows = []
    for (a, (of_a, drawn_a)), (b, (of_b, drawn_b)) in combinations(found.items(), 2):
        for name in sorted(drawn_a.keys() & drawn_b.keys()):
            apart = drawn_a[name] - drawn_b[name]
            apart = apart[~np.isnan(apart)]
            if len(apart):
                beyond = min((apart <= 0).sum(), (apart >= 0).sum()) + 1
                p = min(1.0, float(2 * beyond / (len(apart) + 1)))
                rows.append(Difference(a, b, name, of_a[name] - of_b[name], band(apart), p))
    return rows
