"""
Scheduling: the next batch of a device or a server, and predicted waiting times.

Nothing in here waits, runs or reads a clock: the time is an argument (in seconds).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from service.core.lanes import BULK, INTERACTIVE, LANES, RECENT_S
from service.serving.admission import AdmissionForecast, Demand, WorkEstimate
from service.serving.batcher.batching import Group, Queue, TokenTally
from service.serving.job import Job

STALE_S = 10.0  # predictions of a model without a batch for so long refuse nothing

M = TypeVar("M")  # the scheduler does not use the model itself


@dataclass(eq=False, slots=True)
class HostedModel(Generic[M]):
    """
    A model on devices or behind a server, with the queue of its jobs.

    Attributes:
        name: its configured name.
        model: prepares the calls.
        copies: the loaded copies, by device; by default *model* on the device "".
        paused: no batch of it begins.
        large: it has one batch at a time on a CPU, with all free cores; None until its first start.
        outcome: of its example, at the first start of this revision.
        charged: seconds of its batches, divided by the weight of their lanes; the model with waiting calls
            that has the lowest is next.
        ended: when its last batch ended, or the scheduler began.
    """

    name: str
    model: M
    queue: Queue
    charged: float = 0.0
    ended: float = 0.0
    copies: dict[str, M] = field(default_factory=dict)
    paused: bool = False
    large: bool | None = None
    outcome: Any = None

    def __post_init__(self) -> None:
        self.copies = self.copies or {"": self.model}

    def slots_of(self, slots: int) -> int:
        """Return how many of a device's *slots* its batches run on: a large model has the first alone."""
        return 1 if self.large else slots


@dataclass(frozen=True, eq=False, slots=True)
class RunningBatch(Generic[M]):
    """
    A batch that a device runs, or a call that a server answers; it takes a slot until it ends.

    Attributes:
        lane: the most urgent lane that had calls when it began.
        began: when it began, in seconds.
        gap_s: how long work waited before that while the device was idle.
        run_s: its predicted seconds.
        device: where it runs, and *copy*, the model there.
        threads: the cores of a CPU that it has.
    """

    hosted: HostedModel[M]
    lane: str
    jobs: list[Job]
    began: float
    gap_s: float
    run_s: float
    device: str
    copy: M
    threads: int = 1


class Capacity(NamedTuple):
    """
    How much a device or a server runs at the same time.

    Attributes:
        slots: batches.
        cores: of a CPU, which may have more of them than slots.
    """

    slots: int = 1
    cores: int = 1


class Wait(NamedTuple, Generic[M]):
    """A slot waits since then for the next batch of a model, and for groups that were known by then."""

    hosted: HostedModel[M]
    known: Set[Group]
    since: float


class Scheduler(Generic[M]):
    """
    Shares devices or a server among models.

    The models have copies on the same devices or on some of them.  Each model counts the devices that have
    a copy of it, so one that is removed from `HostedModel.copies` counts no more.

    Args:
        capacities: of the devices that run more than one batch at a time, and of a server as the device "".
        ahead: further batches that may be sent to a server and wait there for a slot.

    Attributes:
        hosted_models: the models.
        progress: time of the last answer, or of the first call on idle devices.
    """

    def __init__(
        self,
        hosted_models: Sequence[HostedModel[M]],
        now: float,
        capacities: Mapping[str, Capacity] = MappingProxyType({}),
        ahead: int = 0,
    ) -> None:
        self.hosted_models, self._shares = tuple(hosted_models), hosted_models[0].queue.shares
        self._weights = {INTERACTIVE: self._shares.interactive, BULK: self._shares.bulk}
        self._capacities, self._ahead = defaultdict(Capacity, capacities), ahead
        self._interactive_at = -inf  # when the last interactive call arrived
        self._charged = 0.0  # `charged` of the last batch's model when it began
        self._running: dict[RunningBatch[M], float] = {}  # predicted end of each
        self._ended: defaultdict[str, float] = defaultdict(lambda: now)  # end of each device's last batch
        self._waits: dict[tuple[str, int], Wait[M]] = {}  # slots that wait for a batch to fill
        self.progress = now
        for hosted in self.hosted_models:
            hosted.ended = now

    @property
    def running(self) -> Collection[RunningBatch[M]]:
        """The running batches."""
        return self._running.keys()

    @property
    def has_slot(self) -> bool:
        """True if another batch may be sent to the server."""
        return len(self._running) < self._capacities[""].slots + self._ahead

    def ends_in_s(self, now: float) -> float:
        """Return the predicted seconds until all running batches have ended."""
        return max(0.0, max(self._running.values(), default=now) - now)

    @property
    def idle(self) -> bool:
        """True if nothing runs and nothing waits."""
        return not (
            self._running or any(each.queue.waiting and not each.paused for each in self.hosted_models)
        )

    def put(self, hosted: HostedModel[M], job: Job) -> None:
        """Queue one job of *hosted*."""
        if self.idle:
            self.progress = job.arrived
        if job.lane == INTERACTIVE:
            self._interactive_at = job.arrived
        if not hosted.queue.waiting:
            hosted.charged = max(hosted.charged, self._charged)  # time without work gives no credit
        hosted.queue.put(job)

    def on(self, device: str) -> list[RunningBatch[M]]:
        """Return the batches that run on *device*."""
        return [batch for batch in self._running if batch.device == device]

    def next(self, now: float, device: str, slot: int) -> RunningBatch[M] | float:
        """
        Begin the next batch on a slot of *device*; else return the time until which none begins there.

        That time is infinite if none begins before something changes: a call arrives, is prepared or becomes
        interactive, or a batch ends.  The first slot serves all models, the others small ones, so no slot
        waits for what another one does.

        On a CPU, bulk calls leave a core to interactive calls, also for `RECENT_S` after one.  Those of a
        large model leave one to small models.
        """
        running, (slots, cores) = self.on(device), self._capacities[device]
        cores_left = cores - sum(batch.threads for batch in running)
        free = min(cores_left, slots - len(running))
        while True:
            wait = self._waits.pop((device, slot), None)
            waiting = [
                each
                for each in self.hosted_models
                if each.queue.waiting
                and not each.paused
                and device in each.copies
                and slot < each.slots_of(slots)
            ]
            if free <= 0 or not waiting:
                return inf
            spare_until = self._spare_until() if cores > 1 else -inf
            spare = spare_until > now
            if spare and free == 1 and not any(each.queue.depth[INTERACTIVE] for each in waiting):
                return spare_until
            hosted = min(waiting, key=self._charge) if len(waiting) > 1 else waiting[0]
            if wait is None or wait.hosted is not hosted:
                wait = Wait(hosted, frozenset(hosted.queue.pending.groups), now)
            lingers = wait.known or hosted.queue.linger_s
            if lingers and (until := self.waits_until(*wait)) > now:
                self._waits[device, slot] = wait
                return until
            bulk = hosted.queue.waiting == BULK
            shares, threads = max(1, free - (spare and bulk)), 1
            if hosted.large:
                small = bulk and not all(each.large for each in self.hosted_models)
                shares, threads = 1, max(1, cores_left - small)
            urgent = not bulk and {batch.lane for batch in running} == {BULK}
            if batch := self.begin(hosted, now, device, urgent=urgent, slots=shares, threads=threads):
                return batch

    def _spare_until(self) -> float:
        """Return the time until which bulk calls leave a core free; infinite while interactive calls wait."""
        waits = any(each.queue.depth[INTERACTIVE] for each in self.hosted_models if not each.paused)
        return inf if waits else self._interactive_at + RECENT_S

    def _charge(self, hosted: HostedModel[M]) -> float:
        """Return the charge of *hosted*, with the predicted one of its running batches."""
        running = (batch for batch in self._running if batch.hosted is hosted)
        return hosted.charged + sum(batch.run_s / self._weights[batch.lane] for batch in running)

    def _sharing(self, hosted: HostedModel[M]) -> list[HostedModel[M]]:
        """Return each model on devices of *hosted*, itself too."""
        return [each for each in self.hosted_models if each.copies.keys() & hosted.copies.keys()]

    def _at_once(self, hosted: HostedModel[M], devices: Collection[str]) -> int:
        """Return how many batches of *hosted* run at the same time on *devices*; 1 for no device."""
        return sum([hosted.slots_of(self._capacities[device].slots) for device in devices]) or 1

    def _share_per_slot(self, hosted: HostedModel[M], devices: Set[str]) -> float:
        """Return the share of the work of *hosted* that *devices* do, divided by their slots for it."""
        share = self._at_once(hosted, hosted.copies.keys() & devices) / self._at_once(hosted, hosted.copies)
        return share / self._at_once(hosted, devices)

    def waits_until(self, hosted: HostedModel[M], known: Set[Group], since: float) -> float:
        """
        Return the time until which the next batch of *hosted* waits for more calls; -inf for no wait.

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
        queue, pending = hosted.queue, hosted.queue.pending
        others = (each for each in self._sharing(hosted) if each is not hosted and not each.paused)
        if not queue.waiting or queue.fills_a_batch or any(each.queue.waiting for each in others):
            return -inf
        until = queue.oldest() + queue.linger_s if queue.linger_s else -inf
        worth_s = 2 * queue.cost_model.fixed_s
        coming = pending.coming(known, {queue.waiting, INTERACTIVE})
        if coming and pending.between_s <= worth_s:
            waits_on = queue.waiting == BULK or coming * pending.between_s <= worth_s
            until = max(until, worth_s + (max(since, pending.latest) if waits_on else since))
        return until

    def begin(
        self,
        hosted: HostedModel[M],
        now: float,
        device: str = "",
        *,
        urgent: bool = False,
        slots: int = 1,
        threads: int = 1,
    ) -> RunningBatch[M] | None:
        """
        Begin the next batch of *hosted* on *device*; return None if all callers have left.

        Args:
            urgent: without bulk calls, since a batch of theirs already runs.
            slots: that are free for the model; each takes an equal part of what waits.
            threads: that the batch has.
        """
        lane, queue = hosted.queue.waiting, hosted.queue
        jobs = queue.take(now, urgent=urgent, slots=slots)
        if not jobs:
            return None
        # Work that arrived before the last batch ended waited since then: the event loop was busy.
        gap_s = max(0.0, now - max(self._ended[device], min(job.arrived for job in jobs)))
        self._charged = hosted.charged
        begins, cost = now + self._free_in_s(device, now), TokenTally([job.prepared for job in jobs]).total
        run_s, copy = queue.cost_model.run_s(cost), hosted.copies[device]
        batch = RunningBatch(hosted, lane, jobs, now, gap_s, run_s, device, copy, threads)
        self._running[batch] = begins + run_s
        return batch

    def end(self, batch: RunningBatch[M], now: float) -> None:
        """End *batch*, and charge its model."""
        del self._running[batch]
        self._ended[batch.device] = batch.hosted.ended = now
        batch.hosted.charged += (now - batch.began) / self._weights[batch.lane]

    def _free_in_s(self, device: str, now: float) -> float:
        """Return the predicted seconds until a slot of *device* is free."""
        (free, cores), at, running = self._capacities[device], now, {}
        without_slot = max(0, cores - free)
        for batch in self.on(device):
            running[batch] = max(1, batch.threads - without_slot)
            free -= running[batch]
        for batch in sorted(running, key=self._running.__getitem__):
            if free > 0:
                break
            free, at = free + running[batch], self._running[batch]
        return max(0.0, at - now)

    def forecast(
        self, hosted: HostedModel[M], lane: str, demand: Demand, now: float, shares: int = 1
    ) -> AdmissionForecast:
        """
        Return the forecast for a request, of which this scheduler has one of so many equal *shares*.

        Reservations of other requests do not come first: requests take turns by parts, until the
        smaller one is done.

        A prediction that refuses all requests would never be corrected.  So an idle model's own time counts
        as unknown once no batch of it has ended for `STALE_S`, and the next request tries.
        """
        queue, sharing, devices = hosted.queue, self._sharing(hosted), hosted.copies.keys()
        # Bulk calls that wait slow interactive work down.
        slowed = lane == INTERACTIVE and any(each.queue.depth[BULK] for each in sharing)
        slowdown = 1 + self._shares.earned(0.0) if slowed else 1.0
        lanes = LANES if lane == BULK else (INTERACTIVE,)
        first_s = sum(
            each.queue.estimate_s(sum(map(each.queue.waiting_cost, lanes)))
            * self._share_per_slot(each, devices)
            for each in sharing
            if each.queue.waiting or each.queue.pending.groups  # most models are idle
        )
        free_in_s = min((self._free_in_s(device, now) for device in devices), default=0.0)
        wait_s, slots = slowdown * first_s + free_in_s, self._at_once(hosted, devices)
        cost, reserved = queue.cost_of(demand) / shares, queue.reserved[lane]
        own_s = queue.least_s((cost + min(cost, reserved)) / slots) * slowdown
        return AdmissionForecast(
            full=queue.is_full(lane, reserved),
            wait_s=wait_s,
            run_s=0.0 if now - hosted.ended >= STALE_S and self._is_idle(hosted) else own_s,
            drain_s=wait_s + queue.estimate_s(reserved) / slots,
            too_much=cost > queue.most_at_once,
        )

    def _is_idle(self, hosted: HostedModel[M]) -> bool:
        """Return True if *hosted* has no batch that runs and no work that one will be made of."""
        return not (hosted.queue.has_work or any(batch.hosted is hosted for batch in self._running))

    def estimate(self, hosted: HostedModel[M], demand: Demand, shares: int = 1) -> WorkEstimate:
        """Return the size of a share of *demand* in full batches, with all slots of all devices in use."""
        queue, cost = hosted.queue, hosted.queue.cost_of(demand)
        slots = shares * self._at_once(hosted, hosted.copies)
        batches = demand.calls / queue.full_batch(cost / demand.calls)
        return WorkEstimate(queue.estimate_s(cost) / slots, batches / slots)

    def stalled_s(self, now: float) -> float:
        """Return the seconds since the last answer while work waits or runs; 0 if idle."""
        return 0.0 if self.idle else now - self.progress
