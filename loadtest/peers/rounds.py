"""Two things in turns, and what the rounds come to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import median

from loadtest.results import Outcome, count, latencies, percentile


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one of the two: its figure, its latencies, and how many requests failed."""

    value: float
    p50_ms: float
    p99_ms: float
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """A row beside one peer, every round of it."""

    row: str
    peer: str
    version: str
    ours: list[Run]
    theirs: list[Run]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, of the rounds in which the peer answered."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return [our.value / their.value for our, their in pairs if answered(their)]

    @property
    def ratio(self) -> float:
        """Their median; NaN where the peer never answered."""
        return median(self.ratios or [nan])

    @property
    def unanswered(self) -> int:
        """In how many rounds the peer gave no figure."""
        return len(self.theirs) - len(self.ratios)


def answered(run: Run) -> bool:
    """Whether its figure is one: not nothing, and not the latency of a request that never ended."""
    return 0 < run.value < inf


def alternate(
    rounds: int, ours: Callable[[int], Run], theirs: Callable[[int], Run]
) -> tuple[list[Run], list[Run]]:
    """Ours, theirs, ours, theirs …, each told the round, so that both get the same requests."""
    both: tuple[list[Run], list[Run]] = ([], [])
    for number in range(rounds):
        both[0].append(ours(number))
        both[1].append(theirs(number))
    return both


def run_of(outcomes: Sequence[Outcome], value: float) -> Run:
    """A run of the load generator; latencies are those of callers who wait, where there are any."""
    lane = "interactive" if any(outcome.lane == "interactive" for outcome in outcomes) else None
    times = latencies(outcomes, lane)
    p50, p99 = (1000 * percentile(times, share) for share in (0.5, 0.99))
    return Run(value, p50, p99, len(outcomes) - count(outcomes, "ok"))


def merged(runs: Sequence[Run]) -> Run:
    """The median of each figure, and all failures."""
    return Run(
        median(run.value for run in runs),
        median(run.p50_ms for run in runs),
        median(run.p99_ms for run in runs),
        sum(run.failed for run in runs),
    )
