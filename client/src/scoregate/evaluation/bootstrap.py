"""Percentile bootstrap: how far figures vary over units that are drawn again, and how they differ."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from scoregate.evaluation.arrays import BadColumn, Codes, Floats

BAND = (2.5, 97.5)  # percentiles
ROUNDING_TOLERANCE = 1e-12  # drawings of a figure that differ by less differ by the rounding of sums
Z2 = 1.959963984540054**2  # square of the normal distribution's two-sided 95 % quantile

Figures = Mapping[str, float]


class Sample(NamedTuple):
    """
    Units that are drawn with replacement.

    Attributes:
        units: their number.
        figures: computes the figures of a drawing from the number of times that each unit is in it.
        shares: the figures from 0 to 1 that count right answers, each with the number of units that it is of.
    """

    units: int
    figures: Callable[[Codes], Figures]
    shares: Mapping[str, int] = MappingProxyType({})

    @property
    def whole(self) -> Figures:
        """The figures with each unit once."""
        return self.figures(np.ones(self.units, np.intp))


class Drawn(NamedTuple):
    """The drawings of a sample: each figure's values, NaN where it is not defined; none for one unit."""

    sample: Sample
    values: Mapping[str, Floats]


@dataclass(frozen=True)
class Difference:
    """
    Figure of *a* minus that of *b* on the same units: 95 % interval and two-sided p-value.

    The ends are None if all drawings have the same difference, as `ends` says.
    """

    a: str
    b: str
    figure: str
    difference: float
    interval: tuple[float, float] | tuple[None, None]
    p: float


def means(values: Mapping[str, tuple[Codes, Any]], units: int, *, shares: Collection[str] = ()) -> Sample:
    """
    Return the sample whose figures are means of *values*, which have the unit of each value before them.

    A figure whose values are all of one unit is left out: it would be the same in all drawings.

    Args:
        shares: the figures whose values are from 0 to 1, such as right answers.
    """
    sizes = {name: len(np.unique(of)) for name, (of, _) in values.items()}
    several = {name: each for name, each in values.items() if sizes[name] > 1}
    sums = {name: np.bincount(of, each, minlength=units) for name, (of, each) in several.items()}
    counts = {name: np.bincount(of, minlength=units) for name, (of, _) in several.items()}

    def figures(times: Codes) -> Figures:
        drawn = {name: int(each @ times) for name, each in counts.items()}
        return {name: float(sums[name] @ times) / count for name, count in drawn.items() if count}

    return Sample(units, figures, {name: sizes[name] for name in several if name in shares})


def together(*samples: Sample) -> Sample:
    """Return the sample with the figures of all *samples*, which are of the same units."""

    def figures(times: Codes) -> Figures:
        return {name: value for each in samples for name, value in each.figures(times).items()}

    shares = {name: units for each in samples for name, units in each.shares.items()}
    return Sample(samples[0].units, figures, shares)


def drawn(sample: Sample, times: int, seed: int) -> Drawn:
    """
    Return *times* drawings of a sample; none if it has one unit.

    With the same seed, as many units give the same drawings, so that two metrics are compared in pairs.
    """
    random = np.random.default_rng(seed)
    found: list[Figures] = []
    for _ in range(times if sample.units > 1 else 0):
        chosen = random.integers(sample.units, size=sample.units)
        try:
            found.append(sample.figures(np.bincount(chosen, minlength=sample.units)))
        except BadColumn:  # all rows drawn may have the same rating, for example
            found.append({})
    names = dict.fromkeys(name for figures in found for name in figures)
    values = {name: np.array([figures.get(name, np.nan) for figures in found]) for name in names}
    return Drawn(sample, values)


def interval(found: Drawn) -> dict[str, tuple[float, float]]:
    """Return the interval of each figure that has one, as `ends`."""
    every = {name: ends(each, found.sample.shares.get(name)) for name, each in found.values.items()}
    return {name: each for name, each in every.items() if each is not None}


def ends(values: Any, units: int | None = None, lowest: float = 0.0) -> tuple[float, float] | None:
    """
    Return the ends of the middle 95 % of the drawings.

    A figure that is the same in all of them, such as the mean of equal grades, is not certain for that.  A
    share has Wilson's interval (1927), which at 0 and 1 is z²/(n + z²) wide.  Another figure has none, since
    no drawing shows how far it varies.

    Args:
        units: of a share, *n*; None for another figure.
        lowest: the least value of the share.
    """
    low, high = band(values)
    if high - low > ROUNDING_TOLERANCE * max(abs(low), abs(high)):
        return low, high
    if units is None:
        return None
    width = Z2 / (units + Z2)
    return max(low - width, lowest), min(high + width, 1.0)


def band(values: Any) -> tuple[float, float]:
    """Return the ends of the middle 95 % of values; NaN is none."""
    values = np.asarray(values)
    low, high = map(float, np.percentile(values[~np.isnan(values)], BAND))
    return low, high


def differences(found: Mapping[str, tuple[Figures, Drawn]]) -> list[Difference]:
    """
    Return the differences of each two metrics, from the figures of each and its drawings.

    P counts the drawings on the other side of 0, plus one.  It is never below that of a sign test in which
    all units are on one side.
    """
    rows = []
    for (a, (of_a, drawn_a)), (b, (of_b, drawn_b)) in combinations(found.items(), 2):
        for name in sorted(drawn_a.values.keys() & drawn_b.values.keys()):
            apart = drawn_a.values[name] - drawn_b.values[name]
            apart = apart[~np.isnan(apart)]
            if len(apart):
                shares = drawn_a.sample.shares.get(name)
                beyond = min((apart <= 0).sum(), (apart >= 0).sum()) + 1
                least = 2.0 ** (1 - (shares or drawn_a.sample.units))
                p = min(1.0, max(least, float(2 * beyond / (len(apart) + 1))))
                interval = ends(apart, shares, lowest=-1.0) or (None, None)
                rows.append(Difference(a, b, name, of_a[name] - of_b[name], interval, p))
    return rows
