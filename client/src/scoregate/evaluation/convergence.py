"""
How many raters are enough: alpha, and the order of generators, from every number of them.

The paper on skill-aligned annotation (Eldesokey et al. 2026, sections 4.1 and 5.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.stats import rankdata

from scoregate.evaluation.alpha import LEVELS, Ratings, coefficients, paired, ratings_of
from scoregate.evaluation.arrays import Codes, Floats, Names, coded
from scoregate.evaluation.bootstrap import band
from scoregate.evaluation.errors import BadColumn
from scoregate.evaluation.scale import Scale

SAMPLES = 50  # subsets of each size


@dataclass(frozen=True)
class Step:
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
    steps: list[Step]
    order: list[Step] | None
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
        BadColumn: as `alpha`; there is one generator, a unit has two, or all have the same score.
    """
    if level not in LEVELS:
        raise BadColumn("rating", f"{level} is no level of measurement: {', '.join(LEVELS)}")
    found = ratings_of(unit, rater, rating, scale)
    count = len(found.names)
    random = np.random.default_rng(seed)
    steps = [step(found, level, k, list(subsets(count, k, samples, random))) for k in range(2, count + 1)]
    if steps[-1].mean is None:
        raise BadColumn("rating", "no unit has two ratings that could differ")
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


def step(ratings: Ratings, level: str, k: int, chosen: list[tuple[int, ...]]) -> Step:
    alphas = []
    for some in chosen:
        kept = np.isin(ratings.raters, some)
        units, values = paired(ratings.units[kept], ratings.values[kept])
        alphas.append(coefficients(units, values)[level] if len(units) else None)
    return spread(k, alphas)


def spread(k: int, found: list[float | None]) -> Step:
    """Return mean and band of the values that are not None."""
    values = [value for value in found if value is not None]
    missing = len(found) - len(values)
    if not values:
        return Step(k, None, None, None, 0, missing)
    return Step(k, float(np.mean(values)), *band(values), len(values), missing)


def ordered(ratings: Ratings, model: Names, samples: int, seed: int) -> list[Step]:
    """Return the correlation of the order by 1, 2, … raters with that by all of them."""
    names, models = coded([name for name, keep in zip(model, ratings.kept, strict=True) if keep])
    if len(names) < 2:
        raise BadColumn("model", f"there is one generator, {names[0]}")
    if len(np.unique(ratings.units * len(names) + models)) > len(np.unique(ratings.units)):
        raise BadColumn("model", "a unit has two generators")
    everyone = np.ones(len(models), bool)
    wanted = scores(ratings, models, everyone)
    if np.ptp(wanted) == 0:
        raise BadColumn("rating", "all generators have the same score")
    random = np.random.default_rng(seed)
    steps = []
    for k in range(1, len(ratings.names) + 1):
        some = [np.isin(ratings.raters, each) for each in subsets(len(ratings.names), k, samples, random)]
        steps.append(spread(k, [spearman(scores(ratings, models, kept), wanted) for kept in some]))
    return steps


def scores(ratings: Ratings, models: Codes, kept: Any) -> Floats:
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
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
