"""Predictions of batches: how long they take, and which calls are being prepared for them."""

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from service.core.lanes import LANES

FADING_FACTOR = 0.9  # factor on the weight of earlier batches with each new one
MIN_COST_VARIANCE = (
    0.05  # minimum variance of costs, over their mean squared, for an estimate of the fixed part
)
LEAST_TIME_GROWTH = 1.001  # factor on the least seconds of a batch and of a token with each slower batch
PROBE_FACTOR = 2.5  # times the usual cost that is tried while the fixed part is unknown


class CostModel:
    """
    Seconds of a batch as fixed_s + per_token_s * cost: least squares with exponentially decaying weights.

    Batches of one size do not determine the fixed part, so its last estimate stays.  Before the first
    batch, any cost fits and takes no time.

    Attributes:
        has_fixed_part: batches of different sizes have been measured.
        fixed_s: seconds of any batch, regardless of its cost.
        per_token_s: seconds per token.
        fixed_cost: tokens that take as long as the fixed part; inf if tokens take no time.
        typical_cost: recent mean tokens of a batch.
    """

    def __init__(self) -> None:
        # Decaying sums over finished batches.
        self._batches = self._cost = self._seconds = self._squares = self._products = 0.0
        self._elapsed = 0.0  # decaying sum of seconds, including the gaps between batches
        self._measured_s = 0.0  # the fixed part as measured last, which may be out of bounds
        self._least_s = self._least_per_token_s = inf  # of a batch, and of a token in any batch
        self.has_fixed_part = False
        self.fixed_s = self.per_token_s = self.typical_cost = 0.0
        self.fixed_cost = inf

    def observe(self, cost: int, seconds: float, gap_s: float = 0.0) -> None:
        """
        Update the estimates by a finished batch.

        Args:
            cost: its tokens.
            gap_s: seconds that the device was idle before it while work waited.
        """
        self._elapsed = FADING_FACTOR * self._elapsed + seconds + gap_s
        if seconds and cost:
            self._least_s = min(seconds, self._least_s * LEAST_TIME_GROWTH)
            self._least_per_token_s = min(seconds / cost, self._least_per_token_s * LEAST_TIME_GROWTH)
        terms = (1.0, cost, seconds, cost * cost, cost * seconds)
        sums = (self._batches, self._cost, self._seconds, self._squares, self._products)
        faded = (FADING_FACTOR * total + term for total, term in zip(sums, terms, strict=True))
        self._batches, self._cost, self._seconds, self._squares, self._products = faded
        self.typical_cost, mean_seconds = self._cost / self._batches, self._seconds / self._batches
        variance = self._squares / self._batches - self.typical_cost**2
        if variance > MIN_COST_VARIANCE * self.typical_cost**2:
            covariance = self._products / self._batches - self.typical_cost * mean_seconds
            self._measured_s = mean_seconds - max(0.0, covariance / variance) * self.typical_cost
            self.has_fixed_part = True
        self.fixed_s = min(max(0.0, self._measured_s), mean_seconds) if self.has_fixed_part else 0.0
        variable_s = max(0.0, self._seconds - self.fixed_s * self._batches)  # rounding may go below
        self.per_token_s = variable_s / self._cost if self._cost else 0.0
        self.fixed_cost = self.fixed_s / self.per_token_s if self.per_token_s else inf

    def run_s(self, cost: float) -> float:
        """Return the predicted seconds of a batch of *cost* tokens."""
        return self.fixed_s + self.per_token_s * cost

    def largest_within(self, seconds: float) -> float:
        """
        Return the maximum cost of a batch that should end within *seconds*.

        Until the fixed part is known, larger batches than before are tried, or a model that has only had
        single calls would never get larger batches.
        """
        if not self._batches:
            return inf
        fits = max(0.0, seconds - self.fixed_s) / self.per_token_s if self.per_token_s else inf
        if not self.has_fixed_part and self._seconds <= seconds * self._batches:
            return max(fits, PROBE_FACTOR * self.typical_cost)
        return fits

    def estimate_s(self, cost: float, largest: float) -> float:
        """Return the predicted seconds for *cost* tokens in batches of at most *largest* tokens."""
        if not (cost and self._cost):
            return 0.0
        if not self.has_fixed_part:
            return cost * self._elapsed / self._cost
        gap_s = (self._elapsed - self._seconds) / self._batches
        return max(1.0, cost / largest) * (self.fixed_s + gap_s) + self.per_token_s * cost

    def least_s(self, cost: float, largest: float) -> float:
        """
        Return a lower bound of the seconds for *cost* tokens in batches of at most *largest* tokens.

        A model that is slow for the moment may recover, so the quickest batches count, and are forgotten
        slowly.  If only batches of one size have been measured, larger ones may take no longer.
        """
        quickest_s = max(self._least_s, cost * self._least_per_token_s)
        if cost and not self.has_fixed_part:
            quickest_s = min(quickest_s, max(1.0, cost / largest) * self._least_s)
        return min(self.estimate_s(cost, largest), quickest_s)


@dataclass(eq=False, slots=True)
class Group:
    """A number of calls that are prepared together, and the lane that they will join."""

    lane: str
    calls: int


class PendingCalls:
    """
    Groups of calls that will join one queue.

    Attributes:
        groups: those that are being prepared.
        count: by lane, the calls that will join it.
        latest: when a group was last ready, or the first one was begun; in seconds.
        between_s: running mean of the seconds between two calls that are ready.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self.groups: set[Group] = set()
        self.count = dict.fromkeys(LANES, 0)
        self.between_s = 0.0

    @contextmanager
    def expecting(self, lane: str, calls: int, clock: Callable[[], float]) -> Iterator[None]:
        """Count a group while the context is open."""
        group = self.begin(lane, calls, clock())
        try:
            yield
        finally:
            self.end(group, clock())

    def begin(self, lane: str, calls: int, now: float) -> Group:
        """Add a group."""
        if not self.groups:
            self.latest = now
        group = Group(lane, calls)
        self.groups.add(group)
        self.count[lane] += calls
        return group

    def end(self, group: Group, now: float) -> None:
        """Remove a group, which is ready or cancelled."""
        self.groups.remove(group)
        self.count[group.lane] -= group.calls
        between_s = (now - self.latest) / group.calls
        self.between_s += (between_s - self.between_s) * (0.2 if self.between_s else 1.0)
        self.latest = now

    def coming(self, known: Set[Group], lanes: Set[str]) -> int:
        """Return the number of calls of *known* for *lanes* that are still being prepared."""
        return sum(group.calls for group in known & self.groups if group.lane in lanes)
