"""Dynamic batching of one model's calls: how they wait, which form a batch (see ADR 0001), how they end."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import ceil, inf
from typing import Any

from models.core.contract import ModelError, Prepared
from models.core.outcomes import CallResult
from service.core.errors import DeadlineExceeded, ModelFault, ScoregateError
from service.core.lanes import BULK, INTERACTIVE, LANES, Shares, max_filled
from service.observability.instruments import Instruments
from service.serving.admission import Demand
from service.serving.job import Job, JobResult

LIMIT_RECOVERY_FACTOR = 1.05  # growth of the limit that an out-of-memory error set, for each batch
MAX_LANE_SHARE = 0.5  # one request may fill this share of a lane
CHARACTERS_PER_TOKEN = 4
USUAL_CHARACTERS = 400  # characters of a call, which its usual cost includes
FADING_FACTOR = 0.9  # factor on the weight of earlier batches with each new one
MIN_COST_VARIANCE = (
    0.05  # minimum variance of costs, over their mean squared, for an estimate of the fixed part
)
LEAST_TIME_GROWTH = 1.001  # factor on the least seconds of a batch and of a token with each slower batch
PROBE_FACTOR = 2.5  # factor on the usual cost that is tried while the fixed part is unknown


class TokenTally:
    """
    The tokens of some calls in one batch: what they share counts once.

    Attributes:
        total: tokens of all calls.
    """

    def __init__(self, calls: Iterable[Prepared] = ()) -> None:
        self.total = 0
        self._sharing = Counter[str]()
        for call in calls:
            self.add(call)

    def more(self, call: Prepared) -> int:
        """Return the tokens that *call* would add."""
        if call.shared is None:
            return call.cost
        key, shared = call.shared
        return call.cost - (shared if self._sharing[key] else 0)

    def add(self, call: Prepared) -> None:
        """Add a call."""
        self.total += self.more(call)
        if call.shared is not None:
            self._sharing[call.shared[0]] += 1

    def remove(self, call: Prepared) -> None:
        """Remove a call that was added."""
        if call.shared is not None:
            key, _ = call.shared
            self._sharing[key] -= 1
            if not self._sharing[key]:
                del self._sharing[key]
        self.total -= self.more(call)


def take_batch(
    lanes: Mapping[str, Iterable[Job]],
    shares: Shares,
    credit: float,
    now: float,
    *,
    max_items: int,
    max_cost: float,
    fixed_cost: float = inf,
) -> tuple[list[Job], float]:
    """
    Return the next batch, and the credit that bulk calls have afterwards.  The lanes stay as they are.

    Interactive calls go first.  Bulk calls get their earned share, plus spare capacity until the batch
    takes 1.5 times as long as its interactive calls alone.  The first call is always taken, however
    costly, so that no call can block a queue.

    Args:
        credit: tokens that bulk calls have earned in earlier batches.
        fixed_cost: tokens that take as long to compute as the fixed part of a batch's time.
    """
    batch: list[Job] = []
    together, urgent_cost = TokenTally(), 0
    waiting = {lane: (job for job in jobs if not job.has_gone(now)) for lane, jobs in lanes.items()}
    first = {lane: next(jobs, None) for lane, jobs in waiting.items()}
    while len(batch) < max_items:
        interactive, bulk = first[INTERACTIVE], first[BULK]
        take_bulk = bulk and (not interactive or credit >= together.more(bulk.prepared))
        job = bulk if take_bulk else interactive
        if not job:
            break
        size = together.more(job.prepared)
        filling = not interactive and urgent_cost
        limit = min(max_cost, max_filled(urgent_cost, fixed_cost)) if filling else max_cost
        if batch and together.total + size > limit:
            break
        if job is interactive:
            urgent_cost += size
        if interactive and bulk:
            credit += size * shares.earned(now - bulk.arrived) if job is interactive else -size
        together.add(job.prepared)
        batch.append(job)
        lane = INTERACTIVE if job is interactive else BULK
        first[lane] = next(waiting[lane], None)
    return batch, credit if first[BULK] else 0.0


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
        # The sums over finished batches decay.
        self._batches = self._cost = self._seconds = self._squares = self._products = 0.0
        self._elapsed = 0.0  # decaying sum of seconds, including the gaps between batches
        self._measured_s = 0.0  # the fixed part as measured last, which may be out of bounds
        self._least_s = self._least_per_token_s = inf  # least seconds of a batch, and of a token
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
        on_end: called when a group is ready or cancelled.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self.groups: set[Group] = set()
        self.count = dict.fromkeys(LANES, 0)
        self.between_s = 0.0
        self.on_end: Callable[[], object] = lambda: None

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
        self.on_end()

    def coming(self, known: Set[Group], lanes: Set[str]) -> int:
        """Return the number of calls of *known* for *lanes* that are still being prepared."""
        return sum(group.calls for group in known & self.groups if group.lane in lanes)


class Queue:
    """
    The jobs that wait for one model.  Nothing in here waits or reads a clock.

    Args:
        max_items, max_cost: of a batch.
        max_batch_s: maximum predicted duration of a batch.
        max_waiting: tokens that may wait in one lane; checked by admission.
        linger_s: how long a batch that is not full waits for more calls, from its first call's arrival.

    Attributes:
        shares: of the lanes.
        cost_model: how long batches take.
        pending: calls that are being prepared.
        reserved: by lane, tokens of admitted requests that are neither prepared nor queued yet.
        depth: by lane, the number of live jobs.
        waiting: the most urgent lane that holds a live job; empty if neither does.
        on_move: called when a waiting job has changed its lane.
        most_at_once: maximum tokens of one request: a share of a lane, but at least a whole batch.
    """

    def __init__(
        self,
        *,
        max_items: int,
        max_cost: int,
        max_waiting: int,
        max_batch_s: float = inf,
        shares: Shares | None = None,
        linger_s: float = 0.0,
    ) -> None:
        self.cost_model, self.linger_s = CostModel(), linger_s
        self.pending = PendingCalls()
        self._max_items, self._max_cost, self._max_waiting = max_items, max_cost, max_waiting
        self._max_batch_s, self.shares = max_batch_s, shares or Shares()
        self._memory = float(max_cost)  # tokens that fit into memory, as far as is known
        self._credit = 0.0
        self._typical_cost = 0.0  # tokens of a call, a running mean
        self.reserved = dict.fromkeys(LANES, 0.0)
        # Ordered sets: a cancelled call is removed at once with its pictures, in O(1).
        self._lanes: dict[str, OrderedDict[Job, None]] = {lane: OrderedDict() for lane in LANES}
        self.on_move: Callable[[], object] = lambda: None
        self.depth, self.waiting = dict.fromkeys(LANES, 0), ""
        self.most_at_once = max(MAX_LANE_SHARE * max_waiting, max_cost)
        self._cost = {lane: TokenTally() for lane in LANES}

    def __repr__(self) -> str:
        return f"<Queue {self.depth}>"

    def is_full(self, lane: str, reserved: float = 0.0) -> bool:
        """Return True if *lane* admits nothing more, with *reserved* tokens counted as waiting."""
        return self.waiting_cost(lane) + reserved >= self._max_waiting

    def cost_of(self, demand: Demand) -> float:
        """Return the expected tokens of *demand*: recent costs of calls, plus text of unusual length."""
        long = max(0, demand.characters - USUAL_CHARACTERS * demand.calls)
        return demand.calls * self._usual_cost + long / CHARACTERS_PER_TOKEN

    @property
    def _usual_cost(self) -> float:
        """Recent tokens of a call; those of the example before the first call."""
        return self._typical_cost or self.cost_model.typical_cost

    def full_batch(self, call: float) -> int:
        """Return how many calls of *call* tokens a batch holds; at least one, however costly."""
        return max(1, int(min(self._max_items, self._cost_limit() / call))) if call else self._max_items

    def estimate_s(self, cost: float) -> float:
        """Return the predicted seconds for *cost* tokens of usual calls, in batches of their own."""
        usual = self._usual_cost
        return self.cost_model.estimate_s(cost, self.full_batch(usual) * usual) if cost else 0.0

    def least_s(self, cost: float) -> float:
        """Return a lower bound of these seconds.  Used to reject work, so it must never overestimate."""
        usual = self._usual_cost
        return self.cost_model.least_s(cost, max(usual, min(self._memory, self._max_items * usual)))

    def waiting_cost(self, lane: str) -> float:
        """Return the tokens of all calls in *lane*, including those that are being prepared."""
        return self._cost[lane].total + self.pending.count[lane] * self._typical_cost

    @property
    def has_work(self) -> bool:
        """True if calls wait, are being prepared, or belong to admitted requests."""
        reserved = max(self.reserved.values()) >= 1.0  # less is a rounding error of sums
        return bool(self.waiting or self.pending.groups or reserved)

    @property
    def fills_a_batch(self) -> bool:
        """True if as many calls wait as a batch can hold."""
        cost = sum(each.total for each in self._cost.values())
        return sum(self.depth.values()) >= self._max_items or cost >= self._cost_limit()

    def oldest(self) -> float:
        """Return the arrival time of the first live call.  Requires that one waits."""
        return min(job.arrived for lane in self._lanes.values() for job in lane)

    def put(self, job: Job) -> None:
        """Queue *job* in its lane until a batch takes it or its result is done."""
        cost = self._cost[job.lane].more(job.prepared)
        self._typical_cost += (cost - self._typical_cost) * (0.1 if self._typical_cost else 1.0)
        self._add(job)
        job.on_move = self._moved
        job.result.add_done_callback(lambda _: self._remove(job))

    def put_back(self, job: Job) -> bool:
        """
        Queue *job* again, at its place by arrival: the device that had it is out.

        Return False if its callers have gone.
        """
        if job.result.done():
            return False
        job.running = False
        self._insert(job)
        return True

    def _moved(self, job: Job) -> None:
        """Move *job*, whose lane has changed, to that lane if it still waits."""
        if any(job in jobs for jobs in self._lanes.values()):
            self._remove(job)
            self._insert(job)
            self.on_move()

    def _insert(self, job: Job) -> None:
        """Insert *job* into its lane by arrival."""
        lane = self._lanes[job.lane]
        later = [other for other in lane if other.arrived > job.arrived]
        self._add(job)
        for other in later:
            lane.move_to_end(other)

    def _add(self, job: Job) -> None:
        """Add *job* to the end of its lane, and count it there."""
        self._lanes[job.lane][job] = None
        self._cost[job.lane].add(job.prepared)
        self.depth[job.lane] += 1
        self.waiting = INTERACTIVE if self.depth[INTERACTIVE] else BULK

    def _remove(self, job: Job) -> None:
        """Remove *job* from the lane that holds and counts it, if one does."""
        for lane, jobs in self._lanes.items():
            if job in jobs:
                del jobs[job]
                self._cost[lane].remove(job.prepared)
                self.depth[lane] -= 1
                self.waiting = next((lane for lane in LANES if self.depth[lane]), "")
                return

    def take(self, now: float, *, urgent: bool = False, slots: int = 1) -> list[Job]:
        """
        Remove and return the next batch, which may be empty.

        Args:
            urgent: of interactive calls only.
            slots: that are free; each takes an equal part of the most urgent calls.
        """
        lanes: dict[str, Iterable[Job]] = {**self._lanes}
        if urgent:
            lanes[BULK] = ()
        if slots > 1 and self.waiting:
            part = ceil(self.depth[self.waiting] / slots)
            lanes[self.waiting] = islice(self._lanes[self.waiting], part)
        batch, credit = take_batch(
            lanes,
            self.shares,
            self._credit,
            now,
            max_items=self._max_items,
            max_cost=self._cost_limit(),
            fixed_cost=self.cost_model.fixed_cost,
        )
        self._credit = self._credit if urgent else credit
        for job in batch:
            self._remove(job)
        for lane in self._lanes.values():
            while (first := next(iter(lane), None)) and first.has_gone(now):
                self._remove(first)
                first.refuse(DeadlineExceeded(stage="queue"))
        return batch

    def take_all(self, now: float) -> list[Job]:
        """Remove all calls, and return the live ones, even if `take` fails."""
        jobs = [*chain.from_iterable(self._lanes.values())]
        for job in jobs:
            self._remove(job)
            if job.has_gone(now):
                job.refuse(DeadlineExceeded(stage="queue"))
        return [job for job in jobs if not job.result.done()]

    def finished(self, cost: int, seconds: float, gap_s: float = 0.0) -> None:
        """Update the cost model by a batch that succeeded, and raise the memory limit a little."""
        self.cost_model.observe(cost, seconds, gap_s)
        self._memory = min(self._max_cost, self._memory * LIMIT_RECOVERY_FACTOR)

    def ran_out_of_memory(self, cost: int) -> None:
        """Limit the next batches to half of *cost*."""
        self._memory = max(1.0, min(self._memory, cost / 2))

    def _cost_limit(self) -> float:
        """Return the maximum tokens of the next batch.  If one call exceeds `max_batch_s`, allow two."""
        one_s = self.cost_model.run_s(self._typical_cost)
        seconds = self._max_batch_s if one_s <= self._max_batch_s else 2 * one_s
        return min(self._memory, self.cost_model.largest_within(seconds))


def answer(
    name: str,
    queue: Queue,
    jobs: Sequence[Job],
    results: Sequence[JobResult],
    instruments: Instruments,
    gap_s: float = 0.0,
) -> None:
    """
    Check the results of *jobs* of the model *name*, observe their times, count and set them.

    A call that is in a batch of this process, or was sent to a model server or a replica, ends here once,
    also after a fault or without callers.  So does a call that waits, also for a retry, when its queue ends
    by a fault or a shutdown.  Another call that no batch has ends elsewhere: one without callers, and by
    `Job.refuse` one that could not be prepared or is past its deadline.  It is not counted, also if a replica
    refused it.  The cost model learns from batches in which a call succeeded, with the tokens of all their
    calls, which ran in the same seconds: how soon a whole batch fails is no measure of the work.  The cache
    stores the results that are set here.

    Args:
        queue: whose cost model learns.
        results: those of a batch have its seconds as `ran_s`, which no two batches share.
        gap_s: of the first batch, see `CostModel.observe`.
    """
    accepted, succeeded = list[JobResult](), set[float]()
    costs = defaultdict[float, TokenTally](TokenTally)
    for job, result in zip(jobs, results, strict=True):
        if not (isinstance(result.outcome, CallResult) and result.outcome.is_finite()):  # most need no more
            result = replace(result, outcome=checked(name, result.outcome))
        costs[result.ran_s].add(job.prepared)
        if not isinstance(result.outcome, Exception):
            succeeded.add(result.ran_s)
        accepted.append(result)
    for ran_s in (each for each in costs if each in succeeded):
        queue.finished(costs[ran_s].total, ran_s, gap_s)
        gap_s = 0.0
    for job, result in zip(jobs, accepted, strict=True):
        gone = job.result.done()
        job.finish(result)
        if not result.refused:
            waited_s = result.waited_s if job.running else None
            instruments.count_call(name, job.lane, result.outcome, waited_s, gone=gone)


def fail(
    name: str, queue: Queue, jobs: Sequence[Job], reason: ScoregateError, instruments: Instruments
) -> None:
    """End *jobs* with *reason*, whether they run or wait.  Arguments as in `answer`."""
    results = [JobResult(reason, job.waited_s, batch_span=job.batch_span) for job in jobs]
    answer(name, queue, jobs, results, instruments)


def call_fault(name: str) -> ModelFault:
    """Return the error of a call on which the model *name* raised an exception, which is logged."""
    return ModelFault(f"the model {name} failed on this call")


def checked(name: str, outcome: Any) -> Any:
    """
    Return the *outcome* of the model *name*, or a `ModelFault` if it is a `ModelError` or not finite.

    It is `CallRefused` where a call is refused: `prepare` raises it, or `answer` of a served model.  `score`
    gets accepted calls only, so its error in place of a result is a fault of the model.
    """
    match outcome:
        case ModelError():
            return ModelFault(str(outcome))
        case CallResult() if not outcome.is_finite():
            return ModelFault(f"the model {name} returned a number that is not finite")
    return outcome
