"""Win rates and strengths of images compared in pairs, which pairs are compared, and their verdicts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations
from typing import Any, Literal, NamedTuple

import numpy as np

from service.core.errors import ScoregateError

PRIOR_SD = 1.0  # the prior of a strength is normal with the mean 0
STRENGTH_DECIMALS = 9  # decimals of strengths that differ
MAX_STEPS = 100  # Newton's method needs some ten steps

Winner = Literal["a", "b", "tie"]
POINTS_BY_WINNER: Mapping[Winner, float] = {"a": 1.0, "b": 0.0, "tie": 0.5}  # the first image's points


@dataclass(frozen=True, slots=True)
class Pair:
    """The verdict on two images, by their indices; *a* is the smaller one."""

    a: int
    b: int
    winner: Winner
    orders_agree: bool = True
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailedPair:
    """Two images without a verdict."""

    a: int
    b: int
    error: ScoregateError


class Strength(NamedTuple):
    """A Bradley-Terry strength, in log-odds, and its standard error."""

    value: float
    stderr: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """
    Which pairs are compared.

    Attributes:
        kind: all pairs; in rounds, of images with similar results; or the first images with all others.
        per_image: pairs for each image, so that there are as many times more than images; for `all` unused.
    """

    kind: Literal["all", "swiss", "anchor"] = "all"
    per_image: int = 1

    def pairs(self, count: int) -> int:
        """Return the number of pairs among *count* images."""
        every = count * (count - 1) // 2
        return every if self.kind == "all" else min(every, self.per_image * count)

    def next_round(self, count: int, done: Sequence[Pair | FailedPair]) -> list[tuple[int, int]]:
        """
        Return the pairs that follow those that are *done*, in the order of the rounds; none at the end.

        Of `swiss`, all images have the same number of pairs at the end.  Up to about half of all pairs, that
        is possible in rounds for any results.  For more, the images stand on a circle, and each meets its
        neighbours, in one round: most pairs are among these anyway.
        """
        if self.kind == "swiss" and 4 * self.per_image <= count:
            return self._swiss_round(count, done) if len(done) < self.pairs(count) else []
        if done:
            return []
        every = combinations(range(count), 2)
        if self.kind == "swiss":
            return [(a, b) for a, b in every if min(b - a, count - b + a) <= self.per_image]
        return [*every][: self.pairs(count)]

    def _swiss_round(self, count: int, done: Sequence[Pair | FailedPair]) -> list[tuple[int, int]]:
        """
        Return pairs of all images, those of similar points that have not met.

        Of an odd number one image rests in each round, each time another one.  The first and the second that
        rest meet in an additional round at the end, likewise the third and the fourth, and so on.
        """
        points = points_of(count, [pair for pair in done if isinstance(pair, Pair)])
        images, met = {*range(count)}, {frozenset((pair.a, pair.b)) for pair in done}
        if count % 2:
            rested = [
                min(images.difference(*((pair.a, pair.b) for pair in done[start : start + count // 2])))
                for start in range(0, len(done), count // 2)
            ]
            last = [frozenset(two) for two in zip(rested[::2], rested[1::2], strict=False)]
            if len(rested) == 2 * self.per_image:
                return sorted((min(two), max(two)) for two in last)
            met.update(last)
            images.remove(resting(images, rested, met, points))
        return matching(sorted(images), met, points)


def resting(
    images: set[int], rested: Sequence[int], met: Collection[frozenset[int]], points: Sequence[float]
) -> int:
    """Return the image that rests: the weakest, or a similar one to the last that rested, for their pair."""
    if len(rested) % 2 == 0:
        return min(images - {*rested}, key=lambda image: (points[image], -image))
    last = rested[-1]
    able = [image for image in sorted(images - {*rested}) if frozenset((image, last)) not in met]
    return min(able, key=lambda image: abs(points[image] - points[last]))


def matching(
    images: Sequence[int], met: Collection[frozenset[int]], points: Sequence[float]
) -> list[tuple[int, int]]:
    """
    Return pairs of an even number of images that have not *met*, each image once.

    Those of the most similar points come first.  Two images that are left then take over a pair, one partner
    each.  While no image has met half of the others there is such a pair: both together may join more images
    than there are pairs (as in Dirac's theorem on Hamiltonian cycles, 1952).
    """

    def apart(pair: Iterable[int]) -> float:
        a, b = pair
        return abs(points[a] - points[b])

    def able(*pairs: tuple[int, int]) -> bool:
        return not any(frozenset(pair) in met for pair in pairs)

    chosen, left = list[tuple[int, int]](), {*images}
    for pair in sorted(combinations(images, 2), key=apart):
        if left.issuperset(pair) and able(pair):
            chosen.append(pair)
            left.difference_update(pair)
    while left:
        a, b = left.pop(), left.pop()
        swaps = [
            (pair, ((a, x), (b, y))) for pair in chosen for x, y in permutations(pair) if able((a, x), (b, y))
        ]
        pair, new = min(swaps, key=lambda swap: sum(map(apart, swap[1])) - apart(swap[0]))
        chosen.remove(pair)
        chosen += [(min(each), max(each)) for each in new]
    return chosen


def points_of(count: int, pairs: Sequence[Pair]) -> list[float]:
    """Return the points of each image: 1 for a win, and half a point for a tie."""
    points = [0.0] * count
    for pair in pairs:
        share = POINTS_BY_WINNER[pair.winner]
        points[pair.a] += share
        points[pair.b] += 1 - share
    return points


def win_rates(count: int, pairs: Sequence[Pair]) -> list[float | None]:
    """Return the points of each image over its pairs; None without a pair.  All pairs add up to n/2."""
    games = [sum(each in (pair.a, pair.b) for pair in pairs) for each in range(count)]
    points = points_of(count, pairs)
    return [point / played if played else None for point, played in zip(points, games, strict=True)]


def strengths(count: int, pairs: Sequence[Pair]) -> list[Strength | None]:
    """
    Return the Bradley-Terry strength of each image: the most probable ones; None without a pair.

    P(a beats b) = 1 / (1 + exp(s_b - s_a)), and a tie is half a win of each (Bradley and Terry 1952).  The
    prior of each strength is normal with the mean 0 and the standard deviation `PRIOR_SD`, so the strength of
    an image that wins all its pairs is finite.  The mean of all is 0.  The standard errors are those of the
    normal approximation at the most probable strengths (Laplace), of each strength minus the mean of all:
    pairs say nothing about a level that all have in common.
    """
    played = sorted({each for pair in pairs for each in (pair.a, pair.b)})
    if not played:
        return [None] * count
    places = {image: place for place, image in enumerate(played)}
    a, b = (np.array([places[getattr(pair, side)] for pair in pairs]) for side in ("a", "b"))
    won = np.array([POINTS_BY_WINNER[pair.winner] for pair in pairs])
    values = np.zeros(len(played))
    for _ in range(MAX_STEPS):
        slope, precision = derivatives(values, a, b, won)
        step = np.linalg.solve(precision, slope)
        values += step
        if np.abs(step).max() < 10.0**-STRENGTH_DECIMALS:
            break
    level = PRIOR_SD**2 / len(played)  # the variance of the mean of all, which no verdict is about
    errors = np.sqrt(np.diag(np.linalg.inv(precision)) - level)
    found = [Strength(float(value), float(error)) for value, error in zip(values, errors, strict=True)]
    return [found[places[each]] if each in places else None for each in range(count)]


def derivatives(
    values: np.ndarray, a: np.ndarray, b: np.ndarray, won: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the slope (n) of the log-posterior at *values*, and its negative curvature (n, n)."""
    expected = 1 / (1 + np.exp(values[b] - values[a]))
    slope = -values / PRIOR_SD**2
    np.add.at(slope, a, won - expected)
    np.add.at(slope, b, expected - won)
    curve = expected * (1 - expected)
    precision = np.eye(len(values)) / PRIOR_SD**2
    for rows, columns, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
        np.add.at(precision, (rows, columns), sign * curve)
    return slope, precision


def ranking(found: Sequence[Strength | None]) -> list[int]:
    """Return the images that have a strength, the strongest first; equal ones in the order of the request."""
    known = {
        index: round(each.value, STRENGTH_DECIMALS) for index, each in enumerate(found) if each is not None
    }
    return sorted(known, key=lambda index: -known[index])  # a stable sort
