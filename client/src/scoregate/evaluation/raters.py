"""
Krippendorff's alpha: how well raters agree, 1 perfectly and 0 as by chance; and how many raters are enough.

Krippendorff 2011, "Computing Krippendorff's alpha-reliability".  Extreme disagreement, bootstrap and the
convergence over the number of raters as in the paper on skill-aligned annotation (Eldesokey et al. 2026,
sections 4.1 and 5.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Codes, Floats, Names, Scale, average_ranks, coded, floats, inside
from scoregate.evaluation.bootstrap import Sample, band, drawn, interval

Level = Literal["nominal", "ordinal", "interval"]
LEVELS = get_args(Level)
EXTREME = 0.4  # share of the scale between the highest and the lowest rating of a unit

Coefficients = dict[str, float | None]

SAMPLES = 50  # subsets of each size


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
    names: list[str]  # names of the raters
    kept: npt.NDArray[np.bool_]
    out_of_scale: int


def ratings_of(unit: Names, rater: Names, rating: Any, scale: Scale | None = None) -> Ratings:
    """
    Return the ratings inside the scale.

    Raises:
        ColumnError: no rating is inside the scale, there is one rater, or one rated a unit twice.
    """
    values = floats(rating, "rating")
    kept = inside(values, scale, "rating")
    units, unit_codes = coded([name for name, keep in zip(unit, kept, strict=True) if keep])
    raters, rater_codes = coded([name for name, keep in zip(rater, kept, strict=True) if keep])
    if len(raters) < 2:
        raise ColumnError("rater", f"there is one rater, {raters[0]}, and agreement needs two")
    cells, count = np.unique(unit_codes * len(raters) + rater_codes, return_counts=True)
    if count.max() > 1:
        unit_at, rater_at = divmod(int(cells[count.argmax()]), len(raters))
        raise ColumnError(
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
        ColumnError: as `ratings_of`; no unit has two ratings; or all ratings are the same.
    """
    found = ratings_of(unit, rater, rating, scale)
    units, values = paired(found.units, found.values)
    together = np.array(unit if cluster is None else cluster, dtype=object)[found.kept]
    clusters = coded(together[np.bincount(found.units)[found.units] > 1].tolist())[1]
    if not len(units):
        raise ColumnError("unit", "no unit has two ratings")
    if values.min() == values.max():
        raise ColumnError("rating", f"all {len(values)} ratings are {values[0]:g}")
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
    except ColumnError:
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


@dataclass(frozen=True)
class ConvergenceStep:
    """
    *k* raters.

    Attributes:
        mean: of alpha or of Spearman's correlation over the subsets.
        low, high: the middle 95 % of them.
        subsets: with a value.  Alpha is undefined if all ratings are the same, or of different units; the
            correlation, if all generators are rated the same, or not all generators are rated.
        undefined: subsets without a value.
    """

    k: int
    mean: float | None
    low: float | None
    high: float | None
    subsets: int
    undefined: int


@dataclass(frozen=True)
class Convergence:
    """
    Attributes:
        level: the alpha's.
        steps: alpha from two raters to all of them.
        order: Spearman's correlation of the generators' scores with those from all raters, from one rater on.
    """

    level: str
    steps: list[ConvergenceStep]
    order: list[ConvergenceStep] | None
    raters: int
    ratings: int
    out_of_scale: int


def convergence(
    unit: Names,
    rater: Names,
    rating: Any,
    *,
    model: Names | None = None,
    level: str = "interval",
    scale: Scale | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Convergence:
    """
    Return alpha's mean and band over subsets of 2, 3, … raters: all subsets, or *samples* different ones.

    Args:
        model: the generator of each unit; with it the order of generators is compared, too.

    Raises:
        ColumnError: as `alpha`; there is one generator, a unit has two, or all have the same score.
    """
    if level not in LEVELS:
        raise ColumnError("rating", f"{level} is no level of measurement: {', '.join(LEVELS)}")
    found = ratings_of(unit, rater, rating, scale)
    count = len(found.names)
    random = np.random.default_rng(seed)
    steps = [step(found, level, k, list(subsets(count, k, samples, random))) for k in range(2, count + 1)]
    if steps[-1].mean is None:
        raise ColumnError("rating", "no unit has two ratings that could differ")
    order = ordered(found, model, samples, seed) if model is not None else None
    return Convergence(level, steps, order, count, len(found.values), found.out_of_scale)


def subsets(count: int, k: int, samples: int, random: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """Yield all sets of *k* out of *count*, or *samples* different ones if there are more."""
    if comb(count, k) <= samples:
        yield from combinations(range(count), k)
        return
    seen: set[tuple[int, ...]] = set()
    while len(seen) < samples:
        chosen = tuple(sorted(map(int, random.choice(count, k, replace=False))))
        if chosen not in seen:
            seen.add(chosen)
            yield chosen


def step(ratings: Ratings, level: str, k: int, chosen: list[tuple[int, ...]]) -> ConvergenceStep:
    alphas = []
    for some in chosen:
        kept = np.isin(ratings.raters, some)
        units, values = paired(ratings.units[kept], ratings.values[kept])
        alphas.append(coefficients(units, values)[level] if len(units) else None)
    return spread(k, alphas)


def spread(k: int, found: list[float | None]) -> ConvergenceStep:
    """Return mean and band of the values that are not None."""
    values = [value for value in found if value is not None]
    missing = len(found) - len(values)
    if not values:
        return ConvergenceStep(k, None, None, None, 0, missing)
    return ConvergenceStep(k, float(np.mean(values)), *band(values), len(values), missing)


def ordered(ratings: Ratings, model: Names, samples: int, seed: int) -> list[ConvergenceStep]:
    """Return the correlation of the order by 1, 2, … raters with that by all of them."""
    names, models = coded([name for name, keep in zip(model, ratings.kept, strict=True) if keep])
    if len(names) < 2:
        raise ColumnError("model", f"there is one generator, {names[0]}")
    if len(np.unique(ratings.units * len(names) + models)) > len(np.unique(ratings.units)):
        raise ColumnError("model", "a unit has two generators")
    everyone = np.ones(len(models), bool)
    wanted = generator_means(ratings, models, everyone)
    if np.ptp(wanted) == 0:
        raise ColumnError("rating", "all generators have the same score")
    random = np.random.default_rng(seed)
    steps = []
    for k in range(1, len(ratings.names) + 1):
        some = [np.isin(ratings.raters, each) for each in subsets(len(ratings.names), k, samples, random)]
        steps.append(spread(k, [spearman(generator_means(ratings, models, kept), wanted) for kept in some]))
    return steps


def generator_means(ratings: Ratings, models: Codes, kept: Any) -> Floats:
    """Return each generator's mean over the means of its units; NaN without a rating."""
    _, first, units = np.unique(ratings.units[kept], return_index=True, return_inverse=True)
    means = np.bincount(units, ratings.values[kept]) / np.bincount(units)
    owners, count = models[kept][first], models.max() + 1
    sums, sizes = np.bincount(owners, means, count), np.bincount(owners, minlength=count)
    found: Floats = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan).round(12)  # floats' noise
    return found


def spearman(one: Floats, other: Floats) -> float | None:
    """Return Spearman's correlation; None if *one* is constant or has gaps."""
    if np.isnan(one).any() or np.ptp(one) == 0:
        return None
    return float(np.corrcoef(average_ranks(one), average_ranks(other))[0, 1])
