"""
Krippendorff's alpha: how well raters agree, 1 perfectly and 0 as by chance.

Krippendorff 2011, "Computing Krippendorff's alpha-reliability".  Extreme disagreement and bootstrap as in
the paper on skill-aligned annotation (Eldesokey et al. 2026, section 4.1).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, floats
from scoregate.evaluation.bootstrap import Sample, drawn, interval
from scoregate.evaluation.errors import BadColumn
from scoregate.evaluation.scale import Scale, inside

LEVELS = ("nominal", "ordinal", "interval")
EXTREME = 0.4  # of the scale, between the highest and the lowest rating of a unit

Coefficients = dict[str, float | None]


@dataclass(frozen=True)
class Alpha:
    """
    Attributes:
        nominal, ordinal, interval: ratings as names, as an order, as numbers.
        units: those with two ratings or more; *single* counts the others.
        ratings: of those units.
        extreme_disagreement: the share of units whose ratings span 40 % of the scale or more.
        clusters: those that were drawn; None without a bootstrap.
        intervals: 95 %, by level, from clusters of units drawn with replacement; None without a bootstrap.
    """

    nominal: float | None
    ordinal: float | None
    interval: float | None
    units: int
    ratings: int
    raters: int
    single: int
    out_of_scale: int
    extreme_disagreement: float
    clusters: int | None
    intervals: dict[str, tuple[float, float]] | None


@dataclass(frozen=True)
class Ratings:
    """Ratings inside the scale: the unit, the rater and the value of each, and the mask of their rows."""

    units: Codes
    raters: Codes
    values: Floats
    names: list[str]  # of the raters
    kept: npt.NDArray[np.bool_]
    out_of_scale: int


def ratings_of(unit: Names, rater: Names, rating: Any, scale: Scale | None = None) -> Ratings:
    """
    Return the ratings inside the scale.

    Raises:
        BadColumn: no rating is inside the scale, there is one rater, or one rated a unit twice.
    """
    values = floats(rating, "rating")
    kept = inside(values, scale, "rating")
    units, unit_codes = coded([name for name, keep in zip(unit, kept, strict=True) if keep])
    raters, rater_codes = coded([name for name, keep in zip(rater, kept, strict=True) if keep])
    if len(raters) < 2:
        raise BadColumn("rater", f"there is one rater, {raters[0]}, and agreement needs two")
    cells, count = np.unique(unit_codes * len(raters) + rater_codes, return_counts=True)
    if count.max() > 1:
        unit_at, rater_at = divmod(int(cells[count.argmax()]), len(raters))
        raise BadColumn(
            "unit",
            f"{raters[rater_at]} rated {units[unit_at]} {count.max()} times; a unit is what is rated once",
        )
    return Ratings(unit_codes, rater_codes, values[kept], raters, kept, int((~kept).sum()))


def alpha(
    unit: Names,
    rater: Names,
    rating: Any,
    *,
    scale: Scale | None = None,
    bootstrap: int = 0,
    seed: int = 0,
    cluster: Names | None = None,
) -> Alpha:
    """
    Return alpha at three levels of measurement, with intervals from *bootstrap* drawings.

    Args:
        cluster: the units that are drawn together; by default each is drawn by itself.

    Raises:
        BadColumn: as `ratings_of`; no unit has two ratings; or all ratings are the same.
    """
    found = ratings_of(unit, rater, rating, scale)
    units, values = paired(found.units, found.values)
    together = np.array(unit if cluster is None else cluster, dtype=object)[found.kept]
    clusters = coded(together[np.bincount(found.units)[found.units] > 1].tolist())[1]
    if not len(units):
        raise BadColumn("unit", "no unit has two ratings")
    if values.min() == values.max():
        raise BadColumn("rating", f"all {len(values)} ratings are {values[0]:g}")
    low = np.full(units.max() + 1, np.inf)
    high = -low
    np.minimum.at(low, units, values)
    np.maximum.at(high, units, values)
    span = scale.high - scale.low if scale else float(np.ptp(values))
    return Alpha(
        **coefficients(units, values),
        units=len(low),
        ratings=len(values),
        raters=len(found.names),
        single=len(np.unique(found.units)) - len(low),
        out_of_scale=found.out_of_scale,
        extreme_disagreement=float(np.mean(high - low >= EXTREME * span * (1 - 1e-9))),
        clusters=int(clusters.max()) + 1 if bootstrap else None,
        intervals=intervals(units, values, clusters, bootstrap, seed) if bootstrap else None,
    )


def levels(unit: Names, rater: Names, rating: Any) -> Coefficients:
    """Return alpha at the three levels; None if it is undefined, for example if all ratings are the same."""
    try:
        found = alpha(unit, rater, rating)
    except BadColumn:
        return dict.fromkeys(LEVELS)
    return {level: getattr(found, level) for level in LEVELS}


def paired(units: Codes, values: Floats) -> tuple[Codes, Floats]:
    """Return the ratings of units with two or more, and those units numbered anew."""
    kept = np.bincount(units)[units] > 1
    return np.unique(units[kept], return_inverse=True)[1].astype(np.intp), values[kept]


def coefficients(units: Codes, values: Floats, weights: Floats | None = None) -> Coefficients:
    """
    Return alpha at each level, from the ratings of units with two or more; None if all are the same.

    The ordinal distance of two values is that of their middle ranks, so it is the interval distance of
    ranks, and neither needs a table of all pairs of values.

    Args:
        weights: the multiplicity of each unit.
    """
    _, kinds = np.unique(values, return_inverse=True)
    sizes = np.bincount(units)
    weights = np.ones(len(sizes)) if weights is None else weights
    counts = np.bincount(kinds, weights=weights[units]).astype(np.float64)
    if np.count_nonzero(counts) < 2:
        return dict.fromkeys(LEVELS)
    ranks = np.cumsum(counts) - counts / 2
    shares = weights / (sizes - 1)
    return {
        "nominal": nominal(units, kinds.astype(np.intp), counts, shares),
        "ordinal": squared(units, ranks[kinds], weights, shares),
        "interval": squared(units, values, weights, shares),
    }


def nominal(units: Codes, kinds: Codes, counts: Floats, shares: Floats) -> float | None:
    n = counts.sum()
    cells, equal = np.unique(units * (kinds.max() + 1) + kinds, return_counts=True)
    sizes = np.bincount(units)
    same = np.bincount(cells // (kinds.max() + 1), weights=equal.astype(float) ** 2)
    return ratio(float((shares * (sizes**2 - same)).sum()), float((n**2 - (counts**2).sum()) / (n - 1)))


def squared(units: Codes, values: Floats, weights: Floats, shares: Floats) -> float | None:
    """Return alpha with squared distances."""
    each = weights[units]
    n = each.sum()
    values = values - (each * values).sum() / n
    sums, squares = np.bincount(units, values), np.bincount(units, values**2)
    observed = 2 * (shares * (np.bincount(units) * squares - sums**2)).sum()
    return ratio(float(observed), float(2 * n * (each * values**2).sum() / (n - 1)))


def ratio(observed: float, expected: float) -> float | None:
    return 1 - observed / expected if expected > 0 else None


def intervals(
    units: Codes, values: Floats, clusters: Codes, bootstrap: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Return the middle 95 % of alpha over clusters of units drawn with replacement, by level."""
    of_unit = clusters[np.unique(units, return_index=True)[1]]

    def figures(times: Codes) -> dict[str, float]:
        found = coefficients(units, values, times[of_unit].astype(np.float64))
        return {level: value for level, value in found.items() if value is not None}

    return interval(drawn(Sample(int(clusters.max()) + 1, figures), bootstrap, seed))
