"""
Who comes next on a device, or in front of a server, how long that takes, and what others have to wait.

Nothing here waits, runs or looks at a clock: whoever asks says what time it is (in seconds).
"""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from service.core.lanes import BULK, INTERACTIVE
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.pending import Group
from service.serving.batcher.queue import Queue
from service.serving.contract import AdmissionForecast, WorkEstimate
from service.serving.demand import Demand

M = TypeVar("M")  # what answers calls; nothing here looks at it


@dataclass(eq=False, slots=True)
class HostedModel(Generic[M]):
    """
    A model on a device or behind a server, under its configured name, with the calls that wait for it.

    Attributes:
        charged: of the residents with work, the one with the least comes next.  It grows by the seconds
            that its batches took, over the weight of the lane they were for.
    """

    name: str
    model: M
    queue: Queue
    charged: float = 0.0


@dataclass(frozen=True, eq=False, slots=True)
class RunningBatch(Generic[M]):
    """
    A batch on its way through the device, or a call on its way to the server and back.

    Attributes:
        lane: the most urgent that waited for the resident.
        began: when the device took it, in seconds.
        gap_s: how long work had waited then since the device was last busy.
    """

    resident: HostedModel[M]
    lane: str
    batch: list[QueuedCall]
    began: float
    gap_s: float


class Scheduler(Generic[M]):
    """
    The turns of residents.

    Args:
        places: how many turns may run at once: one on a device, several in front of a server.
        ahead: how many more may set out and wait for a place where they are going.
    """

    def __init__(
        self, residents: Sequence[HostedModel[M]], shares: Shares, now: float, places: int = 1, ahead: int = 0
    ) -> None:
        self._residents, self._shares = tuple(residents), shares
        self._places, self._ahead = places, ahead
        self._charged = 0.0  # what the resident of the last turn had been charged when it began
        self._running: dict[RunningBatch[M], float] = {}  # when each should end
        self._ended = now  # the last turn
        self._progress = now  # calls were last answered, or joined an idle device

    @property
    def running(self) -> Collection[RunningBatch[M]]:
        """The turns under way."""
        return self._running.keys()

    @property
    def has_place(self) -> bool:
        """Whether another turn may begin."""
        return len(self._running) < self._places + self._ahead

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return not self._running and not any(r.queue.waiting for r in self._residents)

    def put(self, resident: HostedModel[M], call: QueuedCall) -> None:
        """Queue one call of *resident*, which arrives now."""
        if self.idle:
            self._progress = call.arrived
        if not resident.queue.waiting:
            resident.charged = max(resident.charged, self._charged)  # no credit for time without work
        resident.queue.put(call)

    def next(self) -> HostedModel[M] | None:
        """The resident whose turn it is; None where nothing waits."""
        working = [resident for resident in self._residents if resident.queue.waiting]
        return min(working, key=lambda resident: resident.charged, default=None)

    def waits_until(self, resident: HostedModel[M], known: Set[Group], since: float) -> float:
        """
        Until when the next batch of *resident* waits for more calls; -inf where it goes at once.

        A batch that is not full waits for `linger_s`, and for calls that are being prepared already.
        Without those, their batch takes a fixed part of its own: each that is ready before that has passed
        saves one.  Twice as long is given, since to wait in vain costs the time of the tokens that are
        ready, and to go too early a fixed part.  Else a request's first image would go alone, and the
        others after it.

        It waits on from each call that was ready where all of them are likely to be in time, and for bulk
        calls, for each of which nobody waits.

        Args:
            known: groups that were being prepared when the wait began; those that set out later are
                not waited for, or calls would wait for one another without end.
            since: when it began.
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
        """Whether calls of *resident* that somebody waits for would wait for bulk calls alone."""
        return resident.queue.waiting == INTERACTIVE and {turn.lane for turn in self._running} == {BULK}

    def begin(self, resident: HostedModel[M], now: float, *, urgent: bool = False) -> RunningBatch[M] | None:
        """
        The next batch of *resident*, which begins now; None where all of its callers have left.

        Args:
            urgent: without what bulk calls are owed, since a batch of theirs runs meanwhile.
        """
        lane, queue = resident.queue.waiting, resident.queue
        batch = queue.take(now, urgent=urgent)
        if not batch:
            return None
        # Between batches the loop answers callers; where work waited meanwhile, it waited for that.
        gap_s = max(0.0, now - max(self._ended, min(call.arrived for call in batch)))
        self._charged = resident.charged
        turn = RunningBatch(resident, lane, batch, now, gap_s)
        run_s = queue.cost_model.run_s(sum(call.prepared.cost for call in batch))
        self._running[turn] = now + self._free_in_s(now) + run_s
        return turn

    def answered(self, now: float) -> None:
        """Calls of the batch that runs have been answered."""
        self._progress = now

    def end(self, turn: RunningBatch[M], now: float, share: float = 1.0) -> None:
        """All of the turn's batch, which had *share* of the device, has been answered."""
        del self._running[turn]
        self._ended = now
        turn.resident.charged += share * (now - turn.began) / self._shares.weight(turn.lane)

    def wait_s(self, lane: str, now: float) -> float:
        """Predicted seconds in which what waits in *lane* now will have been done."""
        queues = [resident.queue for resident in self._residents]
        wait_s = sum(queue.drain_s(INTERACTIVE) for queue in queues) * self._slowdown(lane)
        if lane == BULK:
            wait_s += sum(queue.drain_s(BULK) for queue in queues)
        return wait_s / self._places + self._free_in_s(now)

    def _free_in_s(self, now: float) -> float:
        """Seconds until fewer turns than places are left of those under way."""
        ends = sorted(self._running.values())
        return max(0.0, ends[-self._places] - now) if len(ends) >= self._places else 0.0

    def _slowdown(self, lane: str) -> float:
        """How many times as long interactive work takes for what bulk calls get meanwhile."""
        bulk_waits = any(resident.queue.depth(BULK) for resident in self._residents)
        return 1 + self._shares.earned(0.0) if lane == INTERACTIVE and bulk_waits else 1.0

    def outlook(
        self, resident: HostedModel[M], lane: str, demand: Demand | None, now: float
    ) -> AdmissionForecast:
        """
        What a request would meet that asks *demand* of *resident*; without one, a call of one admitted.

        What others have reserved does not come first: a part of each request at a time does.  They take
        turns with this one until the smaller is done.
        """
        queue, wait_s = resident.queue, self.wait_s(lane, now)
        typical_s = queue.cost_model.typical_s
        if demand is None:
            return AdmissionForecast(queue.is_full(lane), wait_s, typical_s, drain_s=wait_s)
        cost, reserved = queue.cost_of(demand), queue.reserved[lane]
        own_s = queue.alone_s(cost + min(cost, reserved)) * self._slowdown(lane) / self._places
        return AdmissionForecast(
            full=queue.is_full(lane, reserved),
            wait_s=wait_s,
            run_s=max(own_s, typical_s),
            drain_s=wait_s + queue.takes_s(reserved) / self._places,
            batches=self.extent(resident, demand).batches,
            too_much=cost > queue.most_at_once,
        )

    def extent(self, resident: HostedModel[M], demand: Demand) -> WorkEstimate:
        """What *demand* comes to in full batches, as many at once as there are places."""
        queue = resident.queue
        call = queue.cost_of(demand) / demand.calls
        calls = queue.full_batch(call)
        batches = demand.calls / (calls * self._places)
        return WorkEstimate(batches * queue.cost_model.run_s(calls * call), batches)

    def stalled_s(self, now: float) -> float:
        """Seconds since calls were last answered while work waits or runs; 0 when idle."""
        return 0.0 if self.idle else now - self._progress
