"""
Thresholds from scores, exactly: a picture is accepted if `score >= threshold`, ties included.

Shares are compared as fractions of whole numbers, so no rounding moves a threshold.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, sqrt
from typing import Any

PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)
MIN_TAIL = 10  # scores on either side of a threshold; with fewer the rate is a guess
Z = 1.959963984540054  # the normal distribution's two-sided 95 %


@dataclass(frozen=True)
class Rate:
    """*count* of *of* samples, of which there is at least one."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """The binomial 95 % interval (Wilson 1927)."""
        centre = self.count + Z * Z / 2
        half = Z * sqrt(self.count * (self.of - self.count) / self.of + Z * Z / 4)
        low, high = (centre - half) / (self.of + Z * Z), (centre + half) / (self.of + Z * Z)
        return (0.0 if self.count == 0 else low), (1.0 if self.count == self.of else high)

    def as_json(self) -> dict[str, Any]:
        """Return the share as JSON."""
        interval = list(self.interval)
        return {"value": self.value, "count": self.count, "of": self.of, "interval_95": interval}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4f}, {self.count} of {self.of} (95 % interval {low:.4f} to {high:.4f})"


def accepted(ordered: Sequence[float], threshold: float) -> Rate:
    """Return the number of ascending scores that are at least *threshold*."""
    return Rate(len(ordered) - bisect_left(ordered, threshold), len(ordered))


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the lowest score that at least *percent* % of the scores do not exceed (nearest rank)."""
    return ordered[max(0, ceil(Fraction(percent * len(ordered), 100)) - 1)]


def percentiles(ordered: Sequence[float]) -> list[float]:
    """Return the distinct scores at `PERCENTS`, ascending."""
    return sorted({percentile(ordered, percent) for percent in PERCENTS})


def for_pass_rate(scores: Iterable[float], wanted: Fraction) -> float:
    """Return the highest score that, as a threshold, passes at least the *wanted* share; above 0, to 1."""
    best_first = sorted(scores, reverse=True)
    return best_first[ceil(wanted * len(best_first)) - 1]


def for_false_accept_rate(bad: Sequence[float], good: Sequence[float], wanted: Fraction) -> float | None:
    """
    Return the lowest score that, as a threshold, accepts at most the *wanted* share of the *bad*.

    None if even the highest score accepts more of them.
    """
    allowed = int(wanted * len(bad))
    worst_last = sorted(bad, reverse=True)
    barrier = worst_last[allowed] if allowed < len(bad) else float("-inf")
    return min((score for score in [*bad, *good] if score > barrier), default=None)


@dataclass(frozen=True)
class Counterpart:
    """
    A threshold of one model, and the one of another model that as many scores pass.

    Attributes:
        threshold, rate: of the new model; None if the scores cannot show it.
        caution: a limit of this result; empty if there is none.
    """

    old_threshold: float
    old_rate: Rate
    threshold: float | None = None
    rate: Rate | None = None
    caution: str = ""


def counterpart(old: Sequence[float], new: Sequence[float], threshold: float) -> Counterpart:
    """
    Return the threshold for *new* scores that keeps the pass rate of *threshold* for *old* ones; both ascend.

    Equal scores pass together, so the rate may not be reachable; then the nearest one is taken.
    """
    rate = accepted(old, threshold)
    if rate.count in (0, rate.of):
        who = "all" if rate.count else "none"
        return Counterpart(threshold, rate, caution=f"{who} of the old scores pass, so any threshold fits")
    found = min((accepted(new, score) for score in set(new)), key=lambda each: abs(each.value - rate.value))
    cautions = []
    if found.value != rate.value:
        cautions.append("equal new scores pass together, so the rate is not kept exactly")
    if min(rate.count, rate.of - rate.count) < MIN_TAIL:
        cautions.append(f"fewer than {MIN_TAIL} scores lie beyond it")
    return Counterpart(threshold, rate, new[found.of - found.count], found, "; ".join(cautions))


def roc_auc(bad: Iterable[float], good: Iterable[float]) -> float:
    """Return the probability that a good sample is above a bad one; a tie counts half."""
    ordered, better = sorted(bad), list(good)
    doubled = sum(bisect_left(ordered, score) + bisect_right(ordered, score) for score in better)
    return doubled / (2 * len(ordered) * len(better))


def roc(bad: Sequence[float], good: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the false-accept and true-accept rates of every threshold, from the highest."""
    falls, rises = sorted(bad), sorted(good)
    thresholds = sorted({*bad, *good}, reverse=True)
    false = [0.0, *(accepted(falls, threshold).value for threshold in thresholds)]
    return false, [0.0, *(accepted(rises, threshold).value for threshold in thresholds)]
