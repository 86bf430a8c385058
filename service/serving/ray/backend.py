"""The backend of a model whose replicas Ray Serve runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, Self
from uuid import uuid4

from models.core.calls import Call
from models.core.contract import ModelInfo, Prepared
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.tasks import Tasks
from service.core.errors import (
    CallRefused,
    DeadlineExceeded,
    Draining,
    ModelChanged,
    ModelFault,
    ScoregateError,
)
from service.core.lanes import INTERACTIVE, LANES
from service.observability.instruments import Instruments
from service.serving.admission import AdmissionForecast, Demand
from service.serving.backends.contract import Backend, prepare_all
from service.serving.batcher.batching import Queue, answer, call_fault, fail
from service.serving.batcher.scheduler import HostedModel, RunningBatch, Scheduler
from service.serving.job import Job, JobResult
from service.serving.ray.groups import Deployment, Described, GroupResult, Lost, Sending, Sent, Work
from service.serving.ray.replicas import ReplicaPresence, ReplicaQueue, ReplicaQueues, abandon, returned

log = logging.getLogger("scoregate.ray")

MAX_LOST_REPLICAS = 3  # a call is not retried after it was lost with so many replicas
FOREVER_S = 3600.0
REFUSAL_S = 20.0  # timeout of the check whether a replica accepts a call


class ReplicatedBackend(Backend):
    """
    Sends calls in groups of about one batch, each to the replica that has seen its images.

    Calls wait in the lanes of their replica until it works on fewer than two groups.  The calls of a lost
    replica are sent to another one.

    Args:
        make_queue: makes an empty queue for a replica; with `alone` for one that takes calls one by one.
        grace_s: seconds that a replica may take for its last groups.
    """

    def __init__(
        self,
        name: str,
        deployment: Deployment,
        make_queue: Callable[..., Queue],
        *,
        cpu: Mapping[str, FairThreads],
        instruments: Instruments,
        grace_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._presence = ReplicaPresence(deployment, self._came, self._went, sleep)
        self._deployment, self._replicas = deployment, ReplicaQueues(make_queue, clock)
        self._cpu, self._instruments, self.clock, self._grace_s = cpu, instruments, clock, grace_s
        self._strays = make_queue(alone=True)  # calls that wait until there is a replica
        self._sending = Tasks()
        self._closed = False
        self.ready = asyncio.Event()
        for lane in LANES:
            instruments.queue_depth.labels(name, lane).set_function(partial(self._depth, lane))

    async def __aenter__(self) -> Self:
        """Watch the replicas; `ready` is set when the first one is known."""
        await self._presence.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Answer waiting calls with `Draining`."""
        self._closed = True
        await self._presence.__aexit__()
        self._instruments.model_ready.labels(self.name).set(0)
        await self._sending.cancel()
        self._fail([*self._strays.take_all(self.clock()), *self._replicas.emptied()], Draining())

    def _depth(self, lane: str) -> int:
        """Return the number of calls that wait in *lane*, also until there is a replica."""
        return self._replicas.depth(lane) + self._strays.depth[lane]

    def _came(self, replica: Described) -> None:
        """Add a replica."""
        if added := self._replicas.add(replica):
            self._instruments.add_device(self.name, replica.device, lambda: added.stalled_s(self.clock()))
        self._settle()
        self.ready.set()

    def _went(self, id: str) -> None:
        """Move the waiting calls of a replica to others; groups that were sent may be answered in time."""
        removed = self._replicas.remove(id)
        self._settle()
        if removed is None:
            return
        self._instruments.remove_device(self.name, removed.described.device)
        for job in removed.queue.take_all(self.clock()):
            self._place(job)
        asyncio.get_running_loop().call_later(self._grace_s, removed.give_up)

    def _settle(self) -> None:
        """Choose the model after a change of replicas; if it was replaced, its calls get `ModelChanged`."""
        strays = self._strays.take_all(self.clock())
        if self._replicas.settle():
            log.warning("model replaced", extra={"model": self.name})
            self._fail([*strays, *self._replicas.emptied()], ModelChanged())
        else:
            for job in strays:
                self._place(job)
        self._instruments.replicas.labels(self.name).set(len(self._replicas.in_use))
        self._instruments.model_ready.labels(self.name).set(not self.missing)

    @property
    def info(self) -> ModelInfo:  # type: ignore[override]
        """The model in use."""
        return self._replicas.info

    @property
    def queues(self) -> Sequence[tuple[Scheduler[Any], HostedModel[Any]]]:  # type: ignore[override]
        """Those of the replicas in use."""
        return [(replica.scheduler, replica.hosted) for replica in self._replicas.in_use]

    @property
    def missing(self) -> str:
        """Empty while a replica runs."""
        return "" if self._replicas.in_use else "no replica runs"

    def forecast(self, lane: str, demand: Demand) -> AdmissionForecast:
        """Predict for a demand that all replicas share; without any, the time until one is back."""
        return super().forecast(lane, demand) if self.queues else self._replicas.forecast_without()

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Prepare for sending: replicas decode, but an image composed of several is sent as one."""
        sending = Sending(self._replicas.cost)
        with self.expecting(lane, len(calls)):
            return await self._cpu[lane].run(prepare_all, sending.prepare, self.name, calls)

    async def refusal(self, call: Call) -> str:
        """Return a replica's reason: this process does not have the model."""
        [made] = await self.prepare([call], INTERACTIVE)
        if isinstance(made, ScoregateError):
            return ""
        deadline = asyncio.get_running_loop().time() + REFUSAL_S
        job = Job(made, INTERACTIVE, deadline=deadline, model=self.info)
        self.start(job)
        try:
            async with asyncio.timeout_at(deadline):
                outcome = (await job.result).outcome
        except TimeoutError:
            job.cancel()
            return ""
        return outcome.detail if isinstance(outcome, CallRefused) else ""

    def start(self, job: Job) -> None:
        """Queue the job; jobs that are started together are sent together."""
        if self._closed:
            raise Draining
        job.arrived = self.clock()
        self._place(job)

    def _place(self, job: Job) -> None:
        """Queue *job* for a replica of its model; end one without callers, or of another model."""
        if not self._is_wanted(job):
            self._fail([job], ModelChanged())
            return
        job.running = False
        images = job.prepared.data.images
        replica = self._replicas.for_call(images[0].digest if images else "")
        if replica is None:
            self._strays.put(job)
            return
        replica.put(job)
        if not replica.due:
            replica.due = True
            asyncio.get_running_loop().call_soon(self._send_due, replica)

    def _is_wanted(self, job: Job) -> bool:
        """Return True if *job* has callers, and its model is in use."""
        assert job.model is not None
        return not job.result.done() and job.model.identity == self.info.identity

    # --- groups -----------------------------------------------------------------------------------

    def _send_due(self, replica: ReplicaQueue) -> None:
        """Send groups of the calls that wait for *replica*, or for the busiest replica if none do."""
        replica.due = False
        while replica.takes_more(self.clock()) and self._replicas.holds(replica) and not self._closed:
            if not replica.waiting:
                self._replicas.relieve(replica)
            try:
                batch = replica.scheduler.begin(replica.hosted, self.clock())
            except Exception as exc:  # no caller may wait forever
                log.error("calls not sent", extra={"model": self.name}, exc_info=exc)
                self._fail(replica.queue.take_all(self.clock()), Draining())
                return
            if batch is None:
                return
            self._send(replica, batch)

    def _send(self, replica: ReplicaQueue, batch: RunningBatch[None]) -> None:
        name = uuid4().hex

        def promote(job: Job) -> None:
            if job.lane == INTERACTIVE and not job.result.done():
                self._sending.start(self._deployment.promote(replica.id, name))

        for job in batch.jobs:
            job.begin(batch.began)
            job.on_move = promote
        loop = asyncio.get_running_loop()
        loop.call_later(replica.scheduler.ends_in_s(batch.began), self._send_due, replica)
        sent = [Sent(c.prepared.data, c.lane, min(c.deadline - loop.time(), FOREVER_S)) for c in batch.jobs]
        task = self._sending.start(self._deployment.ask(replica.id, name, replica.described.model, sent))
        replica.sent.add(task)
        task.add_done_callback(partial(self._end, replica, batch))
        for job in batch.jobs:
            job.result.add_done_callback(partial(abandon, task, batch.jobs))

    def _end(
        self, replica: ReplicaQueue, batch: RunningBatch[None], task: "asyncio.Task[GroupResult | None]"
    ) -> None:
        """Answer a group's calls or retry them, and send the next group."""
        now, jobs, results = self.clock(), batch.jobs, dict[Job, JobResult]()
        replica.sent.discard(task)
        replica.scheduler.end(batch, now)
        error: ScoregateError | None = None
        if task.cancelled() and replica.over:
            self._lost(replica, jobs)
        elif task.cancelled():
            error = Draining()
        elif isinstance(fault := task.exception(), Lost):
            self._lost(replica, jobs)
        elif fault is not None:
            log.error("group failed", extra={"model": self.name}, exc_info=fault)
            error = call_fault(self.name)
        elif (given := task.result()) is None:
            error = ModelChanged()
        else:
            replica.scheduler.progress = now
            self._count(replica, given.work)
            for job, result in zip(jobs, returned(self.name, replica, batch, given, now), strict=True):
                if self._may_retry(job, result) and not self._closed:
                    self._place(job)
                else:
                    results[job] = result
        if error is not None:
            self._fail(jobs, error)
        self._answer(replica, results)
        if not self._closed:
            self._send_due(replica)

    def _may_retry(self, job: Job, result: JobResult) -> bool:
        """Return True to retry: the replica drains, or it missed that the deadline was extended."""
        in_time = asyncio.get_running_loop().time() < job.deadline
        return isinstance(result.outcome, (Draining, DeadlineExceeded) if in_time else Draining)

    def _count(self, replica: ReplicaQueue, work: Work) -> None:
        """Count the batches of a replica; the series of one that has been removed stay away."""
        work.count(self._instruments, self.name)
        if self._replicas.holds(replica):
            work.count_on(self._instruments, self.name, replica.described.device)

    def _lost(self, replica: ReplicaQueue, jobs: Sequence[Job]) -> None:
        """Remove a replica that was lost until it answers again, and retry *jobs*."""
        log.warning("replica lost", extra={"model": self.name})
        if self._replicas.holds(replica):
            self._went(replica.id)
            self._presence.lost(replica.id)
        for job in jobs:
            job.losses += 1
            if job.losses < MAX_LOST_REPLICAS:
                self._place(job)
            else:
                fault = (
                    f"{MAX_LOST_REPLICAS} replicas of {self.name} went away while they worked on this call"
                )
                self._fail([job], ModelFault(fault))

    def _fail(self, jobs: Sequence[Job], reason: ScoregateError) -> None:
        """End *jobs*, which were sent or wait, with *reason*."""
        fail(self.name, self._strays, jobs, reason, self._instruments)

    def _answer(self, replica: ReplicaQueue, results: Mapping[Job, JobResult]) -> None:
        """Answer calls, with the time that each waited in this process added."""
        waited = [replace(result, waited_s=job.waited_s + result.waited_s) for job, result in results.items()]
        answer(self.name, replica.queue, tuple(results), waited, self._instruments)
