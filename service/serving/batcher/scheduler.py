"""
Scheduling: the next batch of a device or a server, and predicted waiting times.

Nothing in here waits, runs or reads a clock: the time is an argument (in seconds).
"""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from service.core.lanes import BULK, INTERACTIVE
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.pending import Group
from service.serving.batcher.queue import Queue
from service.serving.contract import AdmissionForecast, WorkEstimate
from service.serving.demand import Demand

M = TypeVar("M")  # the model; not used in here


@dataclass(eq=False, slots=True)
class HostedModel(Generic[M]):
    """
    A model on a device or behind a server, with the queue of its calls.

    Attributes:
        name: its configured name.
        charged: seconds of its batches, divided by the weight of their lanes; the model with waiting calls
            that has the lowest is next.
    """

    name: str
    model: M
    queue: Queue
    charged: float = 0.0


@dataclass(frozen=True, eq=False, slots=True)
class RunningBatch(Generic[M]):
    """
    A batch that a device runs, or a call that a server answers.

    Attributes:
        lane: the most urgent lane that had calls when it began.
        began: when it began, in seconds.
        gap_s: how long work waited before that while the device was idle.
    """

    resident: HostedModel[M]
    lane: str
    calls: list[QueuedCall]
    began: float
    gap_s: float


class Scheduler(Generic[M]):
    """
    Shares a device or a server among models.

    Args:
        slots: batches that may run at the same time: one on a device, several on a server.
        ahead: further batches that may be sent and wait there for a slot.
    """

    def __init__(
        self, residents: Sequence[HostedModel[M]], now: float, slots: int = 1, ahead: int = 0
    ) -> None:
        self._residents, self._shares = tuple(residents), residents[0].queue.shares
        self._slots, self._ahead = slots, ahead
        self._charged = 0.0  # `charged` of the last batch's model when it began
        self._running: dict[RunningBatch[M], float] = {}  # predicted end of each
        self._ended = now  # of the last batch
        self._progress = now  # time of the last answer, or of the first call on an idle device

    @property
    def running(self) -> Collection[RunningBatch[M]]:
        """The running batches."""
        return self._running.keys()

    @property
    def has_slot(self) -> bool:
        """True if another batch may begin."""
        return len(self._running) < self._slots + self._ahead

    @property
    def idle(self) -> bool:
        """True if nothing runs and nothing waits."""
        return not self._running and not any(r.queue.waiting for r in self._residents)

    def put(self, resident: HostedModel[M], call: QueuedCall) -> None:
        """Queue one call of *resident*."""
        if self.idle:
            self._progress = call.arrived
        if not resident.queue.waiting:
            resident.charged = max(resident.charged, self._charged)  # no credit for time without work
        resident.queue.put(call)

    def next(self) -> HostedModel[M] | None:
        """Return the model whose batch is next; None if nothing waits."""
        working = [resident for resident in self._residents if resident.queue.waiting]
        return min(working, key=lambda resident: resident.charged, default=None)

    def waits_until(self, resident: HostedModel[M], known: Set[Group], since: float) -> float:
        """
        Return the time until which the next batch of *resident* waits for more calls; -inf for no wait.

        A batch that is not full waits for `linger_s`, and for calls that are already being prepared, for
        up to twice the fixed part of a batch's time: a call that comes in time saves that part, and the
        wait costs the time of the calls that are ready.  Otherwise a request's first image would run alone.

        The wait restarts with each call that becomes ready if all of them should come in time, or if only
        bulk calls wait.

        Args:
            known: groups that were being prepared when the wait began; later groups are not waited for,
                or the wait might never end.
            since: when the wait began.
        """
        queue, pending = resident.queue, resident.queue.pending
        if not queue.waiting or queue.fills_a_batch or self._others_wait(resident):
            return -inf
        until = queue.oldest() + queue.linger_s if queue.linger_s else -inf
        worth_s = 2 * queue.cost_model.fixed_s
        coming = pending.coming(known, {queue.waiting, INTERACTIVE})
        if coming and pending.between_s <= worth_s:
            waits_on = queue.waiting == BULK or coming * pending.between_s <= worth_s
            until = max(until, worth_s + (max(since, pending.latest) if waits_on else since))
        return until

    def _others_wait(self, resident: HostedModel[M]) -> bool:
        return any(other.queue.waiting for other in self._residents if other is not resident)

    def is_urgent(self, resident: HostedModel[M]) -> bool:
        """Return True if interactive calls of *resident* wait only for running batches of bulk calls."""
        return resident.queue.waiting == INTERACTIVE and {batch.lane for batch in self._running} == {BULK}

    def begin(self, resident: HostedModel[M], now: float, *, urgent: bool = False) -> RunningBatch[M] | None:
        """
        Begin the next batch of *resident*; return None if all callers have left.

        Args:
            urgent: without bulk calls, since a batch of theirs already runs.
        """
        lane, queue = resident.queue.waiting, resident.queue
        calls = queue.take(now, urgent=urgent)
        if not calls:
            return None
        # Work that arrived before the last batch ended waited since then: the event loop was busy.
        gap_s = max(0.0, now - max(self._ended, min(call.arrived for call in calls)))
        self._charged = resident.charged
        batch = RunningBatch(resident, lane, calls, now, gap_s)
        run_s = queue.cost_model.run_s(sum(call.prepared.cost for call in calls))
        self._running[batch] = now + self._free_in_s(now) + run_s
        return batch

    def answered(self, now: float) -> None:
        """Note that calls of a running batch have been answered."""
        self._progress = now

    def end(self, batch: RunningBatch[M], now: float, share: float = 1.0) -> None:
        """End *batch*, which had *share* of the device, and charge its model."""
        del self._running[batch]
        self._ended = now
        batch.resident.charged += share * (now - batch.began) / self._shares.weight(batch.lane)

    def wait_s(self, lane: str, now: float) -> float:
        """Return the predicted seconds until the calls that wait in *lane* now are done."""
        queues = [resident.queue for resident in self._residents]
        wait_s = sum(queue.drain_s(INTERACTIVE) for queue in queues) * self._slowdown(lane)
        if lane == BULK:
            wait_s += sum(queue.drain_s(BULK) for queue in queues)
        return wait_s / self._slots + self._free_in_s(now)

    def _free_in_s(self, now: float) -> float:
        """Return the predicted seconds until a slot is free."""
        ends = sorted(self._running.values())
        return max(0.0, ends[-self._slots] - now) if len(ends) >= self._slots else 0.0

    def _slowdown(self, lane: str) -> float:
        """Return the factor by which bulk calls that wait slow interactive work down."""
        bulk_waits = any(resident.queue.depth(BULK) for resident in self._residents)
        return 1 + self._shares.earned(0.0) if lane == INTERACTIVE and bulk_waits else 1.0

    def forecast(
        self, resident: HostedModel[M], lane: str, demand: Demand | None, now: float
    ) -> AdmissionForecast:
        """
        Return the forecast for a request, or without *demand* for a call of an admitted one.

        Reservations of other requests do not come first: requests take turns by parts, until the
        smaller one is done.
        """
        queue, wait_s = resident.queue, self.wait_s(lane, now)
        typical_s = queue.cost_model.typical_s
        if demand is None:
            return AdmissionForecast(queue.is_full(lane), wait_s, typical_s, drain_s=wait_s)
        cost, reserved = queue.cost_of(demand), queue.reserved[lane]
        own_s = queue.alone_s(cost + min(cost, reserved)) * self._slowdown(lane) / self._slots
        return AdmissionForecast(
            full=queue.is_full(lane, reserved),
            wait_s=wait_s,
            run_s=max(own_s, typical_s),
            drain_s=wait_s + queue.takes_s(reserved) / self._slots,
            batches=self.estimate(resident, demand).batches,
            too_much=cost > queue.most_at_once,
        )

    def estimate(self, resident: HostedModel[M], demand: Demand) -> WorkEstimate:
        """Return the size of *demand* in full batches, with all slots in use."""
        queue = resident.queue
        call = queue.cost_of(demand) / demand.calls
        calls = queue.full_batch(call)
        batches = demand.calls / (calls * self._slots)
        return WorkEstimate(batches * queue.cost_model.run_s(calls * call), batches)

    def stalled_s(self, now: float) -> float:
        """Return the seconds since the last answer while work waits or runs; 0 if idle."""
        return 0.0 if self.idle else now - self._progress
