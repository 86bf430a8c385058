"""
Generators in pairs, on the prompts that they share.

For each metric: every generator's mean, and for each two of them the paired difference, who wins on how many
prompts, Wilcoxon's test, and the number of prompts that a difference of this size needs.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, log2, pi
from statistics import NormalDist
from typing import Any

import numpy as np

from scoregate.errors import ColumnError
from scoregate.evaluation import bootstrap
from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact
from scoregate.evaluation.bootstrap import DRAWINGS, Sample
from scoregate.evaluation.ordering import EQUAL_SHARE, cells_of, exact_cells, signed_rank, without_noise

ALPHA = 0.05
POWER = 0.8
EFFICIENCY = 3 / pi  # Wilcoxon's test has it relative to the t-test, for normal differences

ConfidenceInterval = tuple[float, float] | None


@dataclass(frozen=True)
class GeneratorMean:
    """
    The scores of a generator by a metric.

    Attributes:
        mean: of all its pictures with a score; None without any.
        interval: 95 %, from drawing prompts, each with its pictures; None if it cannot be estimated.
        prompts, pictures: that have a score.
        missing: prompts without one.
        unscored: pictures without one.
    """

    generator: str
    metric: str
    mean: float | None
    interval: ConfidenceInterval
    prompts: int
    pictures: int
    missing: int
    unscored: int


@dataclass(frozen=True)
class GeneratorPair:
    """
    Generator *a* against *b* by a metric.

    Attributes:
        means: of both, as in `GeneratorMean`.
        difference: *a* minus *b*, the mean over the prompts of both; None if they share none.
        interval: of the difference; None if it cannot be estimated.
        prompts: that both have a score of; several pictures of a prompt are averaged.
        wins, ties, losses: prompts on which *a* is better, equal, worse.
        p: Wilcoxon's test of the prompts, two-sided, as in `ordering`; None if they share none.
        p_holm: corrected for all pairs and metrics (Holm 1979).
        better: the generator that is significantly better by *p_holm*, if any.
        needed: prompts for a power of 80 %, see `prompts_needed`.
        missing: prompts without a score, on each side.
    """

    metric: str
    a: str
    b: str
    means: Mapping[str, float | None]
    difference: float | None
    interval: ConfidenceInterval
    prompts: int
    wins: int
    ties: int
    losses: int
    p: float | None
    p_holm: float | None
    better: str | None
    needed: int | None
    missing: Mapping[str, int]


@dataclass(frozen=True)
class Versus:
    """The means and the pairs of all metrics; *prompts* are those of any generator."""

    prompts: int
    means: Sequence[GeneratorMean]
    pairs: Sequence[GeneratorPair]


def versus(
    scores: Mapping[str, Any],
    generator: Names,
    prompt: Names,
    *,
    lower: Collection[str] = (),
    alpha: float = ALPHA,
    times: int = DRAWINGS,
    seed: int = 0,
) -> Versus:
    """
    Compare each two generators, in the order of their first rows.

    Args:
        scores: a column for each metric; NaN is a missing score.
        generator, prompt: of each row.
        lower: metrics whose lower scores are better.
        alpha: two generators differ where `p_holm` is below.
        times: of drawing the prompts for intervals; 0 for none.

    Raises:
        ColumnError: there is one generator, or a score is infinite.
    """
    names = list(dict.fromkeys(generator))
    if len(names) < 2:
        raise ColumnError("generator", "two generators are needed")
    place = {name: number for number, name in enumerate(names)}
    rows = np.array([place[each] for each in generator], np.intp)
    prompts, columns = coded(prompt)
    means: list[GeneratorMean] = []
    pairs: list[GeneratorPair] = []
    for metric, column in scores.items():
        values = np.asarray(column, dtype=np.float64)
        if np.isinf(values).any():
            raise ColumnError(metric, "a value is no finite number")
        of_metric = MetricScores(metric, names, rows, columns, values, metric in lower)
        means += of_metric.means(times, seed)
        pairs += of_metric.pairs(times, seed, alpha)
    return Versus(len(prompts), means, corrected(pairs, alpha))


@dataclass(frozen=True)
class MetricScores:
    """
    The scores of a metric: the codes of generator and prompt, and the value of each row, NaN without a score.
    """

    metric: str
    names: Sequence[str]
    rows: Codes
    columns: Codes
    values: Floats
    lower: bool

    def means(self, times: int, seed: int) -> list[GeneratorMean]:
        """Return the mean of each generator; all are from the same drawings of prompts."""
        scored = ~np.isnan(self.values)
        rows, columns, values = self.rows[scored], self.columns[scored], self.values[scored]
        found, ends = mean_of_each(self.names, rows, columns, values, times, seed)
        return [
            GeneratorMean(
                name,
                self.metric,
                found.get(name),
                ends.get(name),
                with_score := len(np.unique(self.columns[scored & own])),
                int((scored & own).sum()),
                int(self.columns.max()) + 1 - with_score,
                int((own & ~scored).sum()),
            )
            for number, name in enumerate(self.names)
            for own in [self.rows == number]
        ]

    def cells(self) -> Floats:
        """Return the mean of each generator and prompt without the noise of floats, NaN without a score."""
        scored = ~np.isnan(self.values)
        whole, scale = exact(self.values[scored])
        shape = len(self.names), int(self.columns.max()) + 1
        return cells_of(whole / scale, self.rows[scored], self.columns[scored], shape)

    def pairs(self, times: int, seed: int, alpha: float) -> Iterator[GeneratorPair]:
        """Yield each two generators, with `p_holm` not corrected, and the better one whatever p is."""
        cells = self.cells()
        whole = exact_cells(cells)  # equal differences of these are equal
        means = self.means(times, seed)
        for a, b in combinations(range(len(self.names)), 2):
            both = ~np.isnan(cells[a]) & ~np.isnan(cells[b])
            apart = cells[a][both] - cells[b][both]
            ranked = whole[a][both] - whole[b][both]
            test = signed_rank(-ranked if self.lower else ranked)
            worth = without_noise(-ranked if self.lower else ranked)
            one, other = self.names[a], self.names[b]
            p = test.p if len(apart) else None
            yield GeneratorPair(
                metric=self.metric,
                a=one,
                b=other,
                means={one: means[a].mean, other: means[b].mean},
                difference=float(np.mean(apart)) if len(apart) else None,
                interval=interval_of(apart, times, seed),
                prompts=len(apart),
                wins=int((worth > 0).sum()),
                ties=int((worth == 0).sum()),
                losses=int((worth < 0).sum()),
                p=p,
                p_holm=p,
                better=one if test.w_plus > test.w_minus else other,
                needed=prompts_needed(apart, alpha),
                missing={one: means[a].missing, other: means[b].missing},
            )


def mean_of_each(
    names: Sequence[str], rows: Codes, units: Codes, values: Floats, times: int, seed: int
) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """
    Return the mean of each name's values, and the intervals that can be estimated.

    Args:
        rows: the code of each value's name.
        units: what is drawn with each value, such as its prompt; codes may have gaps.
        times: of drawing; 0 for no intervals.
    """
    if not len(values):
        return {}, {}
    of = {name: rows == number for number, name in enumerate(names) if (rows == number).any()}
    drawn_units, codes = np.unique(units, return_inverse=True)
    sample = bootstrap.means({name: (codes[own], values[own]) for name, own in of.items()}, len(drawn_units))
    found = {name: float(values[own].mean()) for name, own in of.items()}
    return found, ends_of(sample, times, seed)


def ends_of(sample: Sample, times: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return the intervals of the figures of a sample."""
    return bootstrap.interval(bootstrap.drawn(sample, times, seed)) if times else {}


def interval_of(differences: Floats, times: int, seed: int) -> ConfidenceInterval:
    """Return the interval of the mean difference."""
    units = np.arange(len(differences))
    sample = bootstrap.means({"difference": (units, differences)}, len(differences))
    return ends_of(sample, times, seed).get("difference")


def prompts_needed(differences: Floats, alpha: float = ALPHA, power: float = POWER) -> int | None:
    """
    Return how many prompts show a difference of this size, two-sided at *alpha*, with the given power.

    (pi / 3) ((z(1 - alpha / 2) + z(power)) s / d)^2, with the mean *d* and the standard deviation *s* of the
    differences.  That of the t-test, divided by the efficiency 3 / pi of Wilcoxon's test for normal
    differences.  At least as many as make the test significant if all have the same sign.

    Returns:
        None without a difference, or for less than two prompts.
    """
    if len(differences) < 2:
        return None
    mean, spread = float(differences.mean()), float(differences.std(ddof=1))
    if abs(mean) <= EQUAL_SHARE * float(np.abs(differences).max()):
        return None
    z = NormalDist().inv_cdf
    count = ((z(1 - alpha / 2) + z(power)) * spread / mean) ** 2 / EFFICIENCY
    return max(ceil(count), ceil(log2(2 / alpha)))


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's method (1979)."""
    found, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = highest
    return found


def corrected(pairs: Sequence[GeneratorPair], alpha: float) -> list[GeneratorPair]:
    """Return pairs with `p_holm` over all of them, and the better generator where it is below *alpha*."""
    tested = [pair for pair in pairs if pair.p is not None]
    ps = dict(zip(map(id, tested), holm([pair.p or 0.0 for pair in tested]), strict=True))
    found = []
    for pair in pairs:
        p = ps.get(id(pair))
        found.append(replace(pair, p_holm=p, better=pair.better if p is not None and p < alpha else None))
    return found
