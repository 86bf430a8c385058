"""A model whose replicas Ray Serve runs, as one gateway asks it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from time import monotonic
from typing import Any, Self
from uuid import uuid4

from models.core.calls import Call
from models.core.contract import ModelInfo, Prepared
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.promise import Promise, all_done
from service.core.concurrency.tasks import Tasks
from service.core.errors import (
    CallRefused,
    DeadlineExceeded,
    Draining,
    ModelFault,
    Replaced,
    ScoregateError,
)
from service.core.lanes import INTERACTIVE, LANES
from service.observability.instruments import Instruments
from service.serving.backends.prepare import prepare_all
from service.serving.backends.queued import StartedQueuedCall
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import RunningBatch
from service.serving.context import Context
from service.serving.contract import AdmissionForecast, Backend, Result, WorkEstimate
from service.serving.demand import Demand
from service.serving.ray.contract import Deployment, Described, Lost, Sent
from service.serving.ray.presence import Presence
from service.serving.ray.replica_queue import GroupedCall, ReplicaQueue
from service.serving.ray.replica_queues import ReplicaQueues
from service.serving.ray.sending import Sending
from service.serving.reservation import Reservation

log = logging.getLogger("scoregate.ray")

LOSSES = 3  # a call that so many replicas went away with is not tried again
FOREVER_S = 3600.0
REFUSAL_S = 20.0  # for a replica to say whether it takes a call


class ReplicatedBackend(Backend):
    """
    Sends calls in groups of about one batch, each to the replica that has seen its images.

    Calls wait here, in the lanes of the replica that they are meant for, until it has fewer than two
    groups to work on.  What a replica went away with is sent to another one.

    Args:
        make_queue: an empty queue for one more replica; `alone` where it takes calls one by one.
    """

    def __init__(
        self,
        name: str,
        deployment: Deployment,
        make_queue: Callable[..., Queue],
        *,
        cpu: Mapping[str, FairThreads],
        instruments: Instruments,
        shares: Shares | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._presence = Presence(deployment, self._came, self._went, sleep)
        self._deployment, self._places = deployment, ReplicaQueues(make_queue, shares or Shares(), clock)
        self._cpu, self._instruments, self._clock = cpu, instruments, clock
        self._strays: list[QueuedCall] = []  # that wait for any replica
        self._sending = Tasks()
        self._gateway, self._groups = uuid4().hex[:8], count()
        self._closed = False
        self.ready = asyncio.Event()
        for lane in LANES:
            instruments.queue_depth.labels(name, lane).set_function(partial(self._places.depth, lane))

    # --- replicas come and go ---------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Learn of the replicas that run; `ready` is set once one of them is known."""
        await self._presence.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new, and answer who waits with `Draining`."""
        self._closed = True
        await self._presence.__aexit__()
        self._instruments.model_ready.labels(self.name).set(0)
        await self._sending.cancel()
        for call in (*self._strays, *self._places.emptied()):
            call.answer(Draining())

    def _came(self, replica: Described) -> None:
        """A replica may be sent groups from now on."""
        self._places.add(replica)
        self._settle()
        self.ready.set()

    def _went(self, id: str) -> None:
        """What waits for a replica is meant for others now; what is on its way may still be answered."""
        waiting = self._places.remove(id)
        self._settle()
        for call in waiting:
            self._place(call)

    def _settle(self) -> None:
        """After replicas have come or gone: who waits for a model that has been replaced asks again."""
        strays, self._strays = self._strays, []
        if self._places.settle():
            log.warning("model replaced", extra={"model": self.name})
            self.replacements += 1
            for call in (*strays, *self._places.emptied()):
                call.answer(Replaced())
        for call in strays:
            self._place(call)  # those that have no answer
        self._instruments.replicas.labels(self.name).set(len(self._places.asked))
        self._instruments.model_ready.labels(self.name).set(not self.missing)

    @property
    def info(self) -> ModelInfo:  # type: ignore[override]
        """The model that is asked."""
        return self._places.info

    @property
    def missing(self) -> str:
        """Empty while a replica runs."""
        return "" if self._places.asked else "no replica runs"

    # --- what waits -------------------------------------------------------------------------------

    def outlook(self, lane: str, demand: Demand | None = None) -> AdmissionForecast:
        """Of a demand that all replicas share."""
        return self._places.outlook(lane, demand)

    def extent(self, demand: Demand) -> WorkEstimate:
        """Of a demand that all replicas share."""
        return self._places.extent(demand)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """An equal part with each replica."""
        return self._places.reserve(lane, demand, parts)

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """As they travel: replicas decode, but what is made of several pictures is sent as one."""
        sending = Sending(self._places.cost)
        return await self._cpu[lane].run(prepare_all, sending.prepare, self.name, calls)

    async def refusal(self, call: Call) -> str:
        """As a replica says: its model is not here."""
        [made] = await self.prepare([call], INTERACTIVE)
        if isinstance(made, ScoregateError):
            return ""
        deadline = asyncio.get_running_loop().time() + REFUSAL_S
        started = self.start(
            made, INTERACTIVE, deadline, Context("", deadline, INTERACTIVE, self._instruments)
        )
        try:
            async with asyncio.timeout_at(deadline):
                await all_done([started.result])
        except TimeoutError:
            started.cancel()
            return ""
        outcome = started.result.result().outcome
        return outcome.detail if isinstance(outcome, CallRefused) else ""

    def start(self, prepared: Prepared, lane: str, deadline: float, context: Context) -> StartedQueuedCall:
        """Queue the call; calls that are started together travel together."""
        if self._closed:
            raise Draining
        image = getattr(prepared.data, "image", None)
        digest = image.digest if image else ""
        call = GroupedCall(prepared, lane, self._clock(), deadline, digest=digest, model=self._places.model)
        self._place(call)
        return StartedQueuedCall(call, partial(self._promote, call))

    def _promote(self, call: GroupedCall) -> None:
        """To the interactive lane, here or where it is."""
        call.lane = INTERACTIVE
        if call.queue is not None:
            call.queue.promote(call)
        if call.running and not call.result.done():
            self._sending.start(self._deployment.promote(*call.group))

    def _place(self, call: QueuedCall) -> None:
        """Have *call* wait for one of the replicas of the model that it was meant for."""
        assert isinstance(call, GroupedCall)
        if call.model != self._places.model:
            call.answer(Replaced())
        if call.result.done():
            return
        place = self._places.for_call(call.digest)
        if place is None:
            self._strays.append(call)
            return
        call.running = False
        place.put(call)
        if not place.due:
            place.due = True
            asyncio.get_running_loop().call_soon(self._send_due, place)

    # --- groups -----------------------------------------------------------------------------------

    def _send_due(self, place: ReplicaQueue) -> None:
        """Send what waits for *place*, or for another one that has too much, as far as it may."""
        place.due = False
        while place.takes_more and self._places.holds(place) and not self._closed:
            if not place.waiting:
                self._places.relieve(place)
            turn = place.scheduler.begin(place.resident, self._clock())
            if turn is None:
                return
            self._send(place, turn)

    def _send(self, place: ReplicaQueue, turn: RunningBatch[None]) -> None:
        name = f"{self._gateway}-{next(self._groups)}"
        for call in turn.batch:
            assert isinstance(call, GroupedCall)
            call.begin(turn.began)
            call.group = (place.id, name)
        now = asyncio.get_running_loop().time()
        sent = [Sent(c.prepared.data, c.lane, min(c.deadline - now, FOREVER_S)) for c in turn.batch]
        task = self._sending.start(self._deployment.ask(place.id, name, place.replica.model, sent))
        task.add_done_callback(partial(self._end, place, turn))
        for call in turn.batch:
            call.result.add_done_callback(partial(abandon, task, turn.batch))

    def _end(
        self, place: ReplicaQueue, turn: RunningBatch[None], task: "asyncio.Task[list[Result] | None]"
    ) -> None:
        """Answer a group's calls, or send them again; learn from it, and let the next group go."""
        now, calls = self._clock(), turn.batch
        place.scheduler.end(turn, now)
        fault = None if task.cancelled() else task.exception()
        if task.cancelled():
            for call in calls:
                self._answer(call, Result(Draining()))
        elif isinstance(fault, Lost):
            self._lost(place, calls)
        elif fault is not None:
            log.error("group failed", extra={"model": self.name}, exc_info=fault)
            for call in calls:
                self._answer(call, Result(ModelFault(f"the model {self.name} failed on this call")))
        elif (results := task.result()) is None:
            for call in calls:
                self._answer(call, Result(Replaced()))
        else:
            self._learn(place, turn, results, now)
            for call, result in zip(calls, results, strict=True):
                again = self._may_yet_be_answered(call, result) and not self._closed
                self._place(call) if again else self._answer(call, result)
        if not self._closed:
            self._send_due(place)

    def _may_yet_be_answered(self, call: QueuedCall, result: Result) -> bool:
        """Whether the replica only shuts down, or kept a deadline that was extended after it was sent."""
        in_time = asyncio.get_running_loop().time() < call.deadline
        return isinstance(result.outcome, Draining) or (
            isinstance(result.outcome, DeadlineExceeded) and in_time
        )

    def _learn(
        self, place: ReplicaQueue, turn: RunningBatch[None], results: Sequence[Result], now: float
    ) -> None:
        """From the replica's own batches: a group's way also has the wait for the one before it."""
        batches: Counter[float] = Counter()  # cost, by the time that the batch took, which no two share
        for call, result in zip(turn.batch, results, strict=True):
            batches[result.ran_s] += call.prepared.cost
        for ran_s, cost in batches.items():
            if ran_s:
                place.queue.finished(cost, ran_s)
        place.scheduler.answered(now)
        self._instruments.count_batch(self.name, len(turn.batch), now - turn.began)

    def _lost(self, place: ReplicaQueue, calls: Sequence[QueuedCall]) -> None:
        """The replica went away, or was not reached: it is sent nothing until it has answered again."""
        log.warning("replica lost", extra={"model": self.name})
        if self._places.holds(place):
            self._went(place.id)
            self._presence.lost(place.id)
        for call in calls:
            assert isinstance(call, GroupedCall)
            call.losses += 1
            if call.losses < LOSSES:
                self._place(call)
            else:
                fault = f"{LOSSES} replicas of {self.name} went away while they worked on this call"
                self._answer(call, Result(ModelFault(fault)))

    def _answer(self, call: QueuedCall, result: Result) -> None:
        """Give the caller its result, with the time that it waited here."""
        gone, waited_s = call.result.done(), call.waited_s + result.waited_s
        self._instruments.count_call(self.name, call.lane, result.outcome, waited_s, gone=gone)
        if not gone:
            call.result.set_result(replace(result, waited_s=waited_s))


def abandon(task: "asyncio.Task[Any]", calls: Sequence[QueuedCall], result: Promise[Result]) -> None:
    """Stop a group that nobody waits for any more."""
    if all(call.result.done() for call in calls):
        task.cancel()
