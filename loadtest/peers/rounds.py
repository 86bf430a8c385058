"""Alternating rounds of two servers, and their summary."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import median

from loadtest.results import Outcome, count, latencies, percentile


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its figure, its latencies, and the number of failed requests."""

    value: float
    p50_ms: float
    p99_ms: float
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """All rounds of a row against one peer."""

    row: str
    peer: str
    version: str
    ours: list[Run]
    theirs: list[Run]

    def ratios_of(self, figure: str) -> list[float]:
        """Return ours over theirs of a field of `Run`, for the rounds in which the peer has it."""
        ours, theirs = ([getattr(run, figure) for run in runs] for runs in (self.ours, self.theirs))
        return [our / their for our, their in zip(ours, theirs, strict=True) if 0 < their < inf]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, of the rounds in which the peer has a figure."""
        return self.ratios_of("value")

    @property
    def ratio(self) -> float:
        """Median ratio; NaN if the peer never has a figure."""
        return median(self.ratios or [nan])

    @property
    def unanswered(self) -> int:
        """Number of rounds in which the peer has no figure."""
        return len(self.theirs) - len(self.ratios)


def alternate(
    rounds: int, ours: Callable[[int], Run], theirs: Callable[[int], Run]
) -> tuple[list[Run], list[Run]]:
    """Alternate between both sides; both get the number of the round, hence the same requests."""
    both: tuple[list[Run], list[Run]] = ([], [])
    for number in range(rounds):
        both[0].append(ours(number))
        both[1].append(theirs(number))
    return both


def run_of(outcomes: Sequence[Outcome], value: float) -> Run:
    """Return a run of the load generator; latencies are those of interactive requests, if there are any."""
    lane = "interactive" if any(outcome.lane == "interactive" for outcome in outcomes) else None
    times = latencies(outcomes, lane)
    p50, p99 = (1000 * percentile(times, share) for share in (0.5, 0.99))
    return Run(value, p50, p99, len(outcomes) - count(outcomes, "ok"))


def merged(runs: Sequence[Run]) -> Run:
    """Return the median of each figure, and the sum of failures."""
    return Run(
        median(run.value for run in runs),
        median(run.p50_ms for run in runs),
        median(run.p99_ms for run in runs),
        sum(run.failed for run in runs),
    )
