"""Pairs of images: which are compared, their verdicts, and what these come to: win rates and strengths."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from service.core.errors import ScoregateError

PRIOR_SD = 1.0  # of a strength, whose prior is normal with the mean 0
SAME = 9  # decimals of strengths that differ
MAX_STEPS = 100  # of Newton's method, which needs some ten

Winner = Literal["a", "b", "tie"]
POINTS: Mapping[Winner, float] = {"a": 1.0, "b": 0.0, "tie": 0.5}  # of the first image of a pair


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
        Return the pairs that follow those that are *done*; none at the end.

        A round of `swiss` has an image once at most: those with the fewest pairs first, and then those whose
        points are the most similar.
        """
        left = self.pairs(count) - len(done)
        every = combinations(range(count), 2)
        if self.kind != "swiss":
            return [] if done else [*every][:left]
        met = {(pair.a, pair.b) for pair in done}
        games = [sum(each in pair for pair in met) for each in range(count)]
        points = points_of(count, [pair for pair in done if isinstance(pair, Pair)])

        def dissimilar(pair: tuple[int, int]) -> tuple[float, ...]:
            a, b = pair
            return games[a] + games[b], abs(points[a] - points[b]), a, b

        chosen, busy = list[tuple[int, int]](), set[int]()
        for pair in sorted((each for each in every if each not in met), key=dissimilar):
            if len(chosen) < left and busy.isdisjoint(pair):
                chosen.append(pair)
                busy.update(pair)
        return chosen


def points_of(count: int, pairs: Sequence[Pair]) -> list[float]:
    """Return the points of each image: 1 for a win, and half a point for a tie."""
    points = [0.0] * count
    for pair in pairs:
        share = POINTS[pair.winner]
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
    normal approximation at the most probable strengths (Laplace).
    """
    played = sorted({each for pair in pairs for each in (pair.a, pair.b)})
    if not played:
        return [None] * count
    places = {image: place for place, image in enumerate(played)}
    a, b = (np.array([places[getattr(pair, side)] for pair in pairs]) for side in ("a", "b"))
    won = np.array([POINTS[pair.winner] for pair in pairs])
    values = np.zeros(len(played))
    for _ in range(MAX_STEPS):
        slope, precision = derivatives(values, a, b, won)
        step = np.linalg.solve(precision, slope)
        values += step
        if np.abs(step).max() < 10.0**-SAME:
            break
    errors = np.sqrt(np.diag(np.linalg.inv(precision)))
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
    known = {index: round(each.value, SAME) for index, each in enumerate(found) if each is not None}
    return sorted(known, key=lambda index: -known[index])  # a stable sort
