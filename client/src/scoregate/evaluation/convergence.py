"""
How many raters are enough: alpha from every number of them.

The paper on skill-aligned annotation (Eldesokey et al. 2026, section 4.1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from scoregate.evaluation.alpha import LEVELS, Ratings, band, coefficients, paired, ratings_of
from scoregate.evaluation.arrays import Names
from scoregate.evaluation.errors import BadColumn
from scoregate.evaluation.scale import Scale

SAMPLES = 50  # subsets of each size


@dataclass(frozen=True)
class Step:
    """
    *k* raters.

    Attributes:
        mean: of alpha over the subsets.
        low, high: where the middle 95 % of them lie.
        subsets: with an alpha.  Those whose ratings are all the same, or of different units, have none.
        undefined: without one.
    """

    k: int
    mean: float | None
    low: float | None
    high: float | None
    subsets: int
    undefined: int


@dataclass(frozen=True)
class Convergence:
    """From two raters to all of them; *level* is the alpha's."""

    level: str
    steps: list[Step]
    raters: int
    ratings: int
    out_of_scale: int


def convergence(
    unit: Names,
    rater: Names,
    rating: Any,
    *,
    level: str = "interval",
    scale: Scale | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Convergence:
    """
    Alpha's mean and band over subsets of 2, 3, … raters: all subsets, or *samples* different ones.

    Raises:
        BadColumn: as `alpha`.
    """
    if level not in LEVELS:
        raise BadColumn("rating", f"{level} is no level of measurement: {', '.join(LEVELS)}")
    found = ratings_of(unit, rater, rating, scale)
    count = len(found.names)
    random = np.random.default_rng(seed)
    steps = [step(found, level, k, list(subsets(count, k, samples, random))) for k in range(2, count + 1)]
    if steps[-1].mean is None:
        raise BadColumn("rating", "no unit has two ratings that could differ")
    return Convergence(level, steps, count, len(found.values), found.out_of_scale)


def subsets(count: int, k: int, samples: int, random: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """All sets of *k* out of *count*, or *samples* different ones where there are more."""
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
        value = coefficients(units, values)[level] if len(units) else None
        if value is not None:
            alphas.append(value)
    missing = len(chosen) - len(alphas)
    if not alphas:
        return Step(k, None, None, None, 0, missing)
    return Step(k, float(np.mean(alphas)), *band(alphas), len(alphas), missing)
