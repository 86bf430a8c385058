"""
Who comes next on a device, how long that takes, and what others have to wait.

Nothing here waits, runs or looks at a clock: a device asks, and says what time it is (in seconds).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import inf

from models.contract import Model
from service.lanes import BULK, INTERACTIVE
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.pending import Group
from service.serving.batcher.queue import Queue


@dataclass(eq=False, slots=True)
class Resident:
    """
    A model on a device, under its configured name, with the calls that wait for it.

    Attributes:
        charged: of the residents with work, the one with the least comes next.  It grows by the seconds
            that its batches took, over the weight of the lane they were for.
    """

    name: str
    model: Model
    queue: Queue
    charged: float = 0.0


@dataclass(frozen=True, eq=False, slots=True)
class Turn:
    """
    A batch on its way through the device.

    Attributes:
        lane: the most urgent that waited for the resident.
        began: when the device took it, in seconds.
        gap_s: how long work had waited then since the device was last busy.
    """

    resident: Resident
    lane: str
    batch: list[QueuedCall]
    began: float
    gap_s: float


class Scheduler:
    """The turns of one device's residents."""

    def __init__(self, residents: Sequence[Resident], shares: Shares, now: float) -> None:
        self._residents, self._shares = tuple(residents), shares
        self._charged = 0.0  # what the resident of the last turn had been charged when it began
        self._busy_until: float | None = None  # as predicted; None between turns
        self._ended = now  # the last turn
        self._progress = now  # calls were last answered, or joined an idle device

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._busy_until is None and not any(r.queue.waiting for r in self._residents)

    def put(self, resident: Resident, call: QueuedCall) -> None:
        """Queue one call of *resident*, which arrives now."""
        if self.idle:
            self._progress = call.arrived
        if not resident.queue.waiting:
            resident.charged = max(resident.charged, self._charged)  # no credit for time without work
        resident.queue.put(call)

    def next(self) -> Resident | None:
        """The resident whose turn it is; None where nothing waits."""
        working = [resident for resident in self._residents if resident.queue.waiting]
        return min(working, key=lambda resident: resident.charged, default=None)

    def waits_until(self, resident: Resident, known: Set[Group], since: float) -> float:
        """
        Until when the next batch of *resident* waits for more calls; -inf where it goes at once.

        A batch that is not full waits for `linger_s`, and for calls that are being prepared already.
        Without those, their batch takes a fixed part of its own; waiting pays where all of them are
        likely to be ready before that has passed.  Twice as long is given, since to wait in vain costs
        the time of the tokens that are ready, and to go too early a fixed part.  Else a request's first
        image would go alone, and the others after it.

        Args:
            known: groups that were being prepared when the wait began; those that set out later are
                not waited for, or calls would wait for one another without end.
            since: when it began.
        """
        queue = resident.queue
        if not queue.waiting or queue.fills_a_batch or self._others_wait(resident):
            return -inf
        until = queue.oldest() + queue.linger_s if queue.linger_s else -inf
        worth_s = 2 * queue.cost_model.fixed_s
        if queue.pending.ready_in_s(known, {queue.waiting, INTERACTIVE}) <= worth_s:
            until = max(until, since + worth_s, queue.pending.latest + worth_s)
        return until

    def _others_wait(self, resident: Resident) -> bool:
        return any(other.queue.waiting for other in self._residents if other is not resident)

    def begin(self, resident: Resident, now: float) -> Turn | None:
        """The next batch of *resident*, which begins now; None where all of its callers have left."""
        lane, queue = resident.queue.waiting, resident.queue
        batch = queue.take(now)
        if not batch:
            return None
        # Between batches the loop answers callers; where work waited meanwhile, it waited for that.
        gap_s = max(0.0, now - max(self._ended, min(call.arrived for call in batch)))
        self._busy_until = now + queue.cost_model.run_s(sum(call.prepared.cost for call in batch))
        self._charged = resident.charged
        return Turn(resident, lane, batch, now, gap_s)

    def answered(self, now: float) -> None:
        """Calls of the batch that runs have been answered."""
        self._progress = now

    def end(self, turn: Turn, now: float) -> None:
        """All of the turn's batch has been answered."""
        self._busy_until, self._ended = None, now
        turn.resident.charged += (now - turn.began) / self._shares.weight(turn.lane)

    def wait_s(self, lane: str, now: float) -> float:
        """Predicted seconds in which what waits in *lane* now will have been done."""
        queues = [resident.queue for resident in self._residents]
        wait_s = sum(queue.drain_s(INTERACTIVE) for queue in queues)
        if lane == INTERACTIVE:
            wait_s *= 1 + self._shares.owed(0.0) if any(queue.depth(BULK) for queue in queues) else 1
        else:
            wait_s += sum(queue.drain_s(lane) for queue in queues)
        left_s = 0.0 if self._busy_until is None else max(0.0, self._busy_until - now)
        return wait_s + left_s

    def stalled_s(self, now: float) -> float:
        """Seconds since calls were last answered while work waits or runs; 0 when idle."""
        return 0.0 if self.idle else now - self._progress
