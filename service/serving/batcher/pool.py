"""A pool: runs the batches of models that share devices, and answers their calls."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import chain
from math import inf
from time import monotonic
from typing import Self

from models.core.contract import Model
from models.core.examples import same
from service.core.errors import Draining, ModelFault, ScoregateError
from service.observability.instruments import Instruments
from service.observability.tracing import Span
from service.serving.batcher.batching import TokenTally, answer, call_fault, checked, fail
from service.serving.batcher.device import (
    Device,
    ExecutionSlot,
    compute_on_one_core,
    is_large,
    is_out_of_memory,
    measure,
    show,
    warm_up,
)
from service.serving.batcher.scheduler import HostedModel, RunningBatch, Scheduler
from service.serving.job import Job, JobResult

log = logging.getLogger("scoregate.device")
MAX_LOST_DEVICES = 2  # a call is not retried once so many devices failed permanently in it
LocalModel = HostedModel[Model]


class Broken(Exception):
    """The example call, which worked at the start, fails now."""


class Pool:
    """
    Runs the batches of its models on their devices.  Decisions and answers happen on the event loop.

    Args:
        devices: of which each has a copy of at least one of the models; by default one without a name.
        on_broken: called once with the reason if a model has no device left; the process should end then.
        clock: in seconds.
    """

    def __init__(
        self,
        hosted_models: Sequence[LocalModel],
        instruments: Instruments,
        *,
        devices: Sequence[Device] = (),
        on_broken: Callable[[str], None] = lambda reason: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.devices = tuple(devices) or (Device(),)
        self._instruments, self._on_broken, self.clock = instruments, on_broken, clock
        capacities = {device.name: device.capacity for device in self.devices}
        self.scheduler = Scheduler(hosted_models, clock(), capacities)
        self._work = asyncio.Event()  # calls have arrived or are prepared, or a batch has ended
        self._ended = asyncio.Event()  # set for a moment when a batch ends
        self._closed = self._leaving = False
        self._tasks: list[asyncio.Task[None]] = []
        for hosted in self.hosted_models:
            hosted.queue.on_move = hosted.queue.pending.on_end = self._work.set
            show(hosted, self.devices_of(hosted), instruments, self.stalled_for, clock)

    @property
    def hosted_models(self) -> Sequence[LocalModel]:
        """The models that the pool serves now."""
        return self.scheduler.hosted_models

    async def __aenter__(self) -> Self:
        """Score the example of every model that is loaded, then start serving."""
        for hosted in self.hosted_models:
            if not hosted.paused:
                await self.warm(hosted)
                self._instruments.model_ready.labels(hosted.name).set(1)
        compute_on_one_core()
        slots = [(device, slot) for device in self.devices for slot in range(len(device.slots))]
        self._tasks = [asyncio.create_task(self._run(*each)) for each in slots]
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Finish running batches, and answer waiting calls with `Draining`.  Raises what ended a loop."""
        self._leaving = True
        self._close(Draining())
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for device in self.devices:
            device.close()
        for fault in filter(None, ended):
            raise fault

    async def warm(self, hosted: LocalModel) -> None:
        """
        Warm the copies up on each slot that they use; on a CPU, decide whether the model is large.

        On a GPU, a batch of the largest allowed size shows the memory that it takes.

        Raises:
            ModelFault: a copy fails, or the numbers of two runs differ, or those of the first start.
            NotYet: a device has too little free memory, on a GPU also for the largest batch.
        """
        if hosted.large is None:
            hosted.large = await is_large(hosted, self.devices_of(hosted), self.clock)
        hosted.large |= not hosted.model.info.reentrant
        devices = self.devices_of(hosted)  # one may have been taken out meanwhile
        used = [
            (hosted.copies[device.name], slot, device.cores if hosted.large else 1)
            for device in devices
            for slot in device.slots[: hosted.slots_of(len(device.slots))]
        ]
        cost, seconds, outcome = await warm_up(hosted.name, used, self.clock)
        for device in devices:
            if copy := hosted.copies.get(device.name):
                await measure(hosted.name, copy, device.slots[0], hosted.queue.full_batch(cost))
        hosted.queue.finished(cost, seconds)
        if hosted.outcome is None:
            hosted.outcome = outcome
        elif not same(hosted.outcome, outcome, exact=hosted.model.info.dtype == "float32"):
            raise ModelFault(f"{hosted.name}: the test call has other numbers than at the first start")

    def devices_of(self, hosted: LocalModel) -> list[Device]:
        """Return the devices that have a copy of *hosted* now."""
        return [device for device in self.devices if device.name in hosted.copies]

    # --- models come and go -----------------------------------------------------------------------

    async def pause(self, hosted: LocalModel) -> None:
        """Begin no new batch of *hosted*, and return when none is running.  Its calls wait."""
        hosted.paused = True
        while any(batch.hosted is hosted for batch in self.scheduler.running) and not self._closed:
            await self._ended.wait()

    def resume(self, hosted: LocalModel) -> None:
        """Let batches of *hosted* begin again."""
        hosted.paused = False
        self._work.set()

    # --- calls arrive ---------------------------------------------------------------------------

    def submit(self, hosted: LocalModel, job: Job) -> None:
        """Queue one job.  Raises `Draining`."""
        if self._closed:
            raise Draining
        job.arrived = self.clock()
        self.scheduler.put(hosted, job)
        self._work.set()

    def stalled_for(self) -> float:
        """Return the seconds since the last finished batch while work waits or runs; 0 if idle."""
        if not self.running and not self._leaving:
            return inf  # the loop ended by itself
        now = self.clock()  # one slot may hang while others answer
        return max(self.scheduler.stalled_s(now), *(device.stalled_for(now) for device in self.devices))

    @property
    def running(self) -> bool:
        """True while the pool serves."""
        return bool(self._tasks) and not self._closed

    # --- the loop -------------------------------------------------------------------------------

    async def _run(self, device: Device, slot: int) -> None:
        """Run batches on a slot until the pool closes or *device* is taken out."""
        try:
            while not (self._closed or device.fault):
                await self._next(device, slot)
        except BaseException:
            self._close(Draining())
            raise

    async def _next(self, device: Device, slot: int) -> None:
        """Run a batch, or wait.  When it returns, nothing holds the calls of the batch."""
        now = self.clock()
        found = self.scheduler.next(now, device.name, slot)
        if isinstance(found, RunningBatch):
            await self._run_batch(found, device, device.slots[slot])
            return
        self._work.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(found - now if found < inf else None):
                await self._work.wait()

    async def _run_batch(self, batch: RunningBatch[Model], device: Device, slot: ExecutionSlot) -> None:
        slot.since = self.clock()
        left = [batch.jobs]  # parts of the batch without results, the next one first
        try:
            while left:
                left[:1] = await self._score(batch, left[0], slot)
        except Broken as exc:
            self._take_out(device, batch, [*chain.from_iterable(left)], exc)
        except BaseException:  # no caller may wait forever
            self._fail(batch.hosted, [*chain.from_iterable(left)], Draining())
            raise
        finally:
            now = self.clock()
            self._instruments.count_device(batch.hosted.name, device.name, len(batch.jobs), now - batch.began)
            self.scheduler.end(batch, now)
            slot.since = inf
            self._work.set()
            self._ended.set()
            self._ended.clear()

    async def _score(
        self, batch: RunningBatch[Model], jobs: list[Job], slot: ExecutionSlot
    ) -> Sequence[list[Job]]:
        """Run *jobs* of a batch, and answer them; after an exception return halves, to find the bad one."""
        hosted, began = batch.hosted, self.clock()
        traced = any(job.span.recording for job in jobs)
        prepared = [job.prepared for job in jobs]
        for job in jobs:
            job.begin(began)
        try:
            with batch_span(jobs, hosted.name) if traced else nullcontext():
                outcomes = await slot.score(batch.copy, prepared, batch.threads)
            if len(outcomes) != len(jobs):
                raise ModelFault(f"the model returned {len(outcomes)} outcomes for {len(jobs)} calls")
        except Exception as exc:
            if is_out_of_memory(exc):
                cost = TokenTally(job.prepared for job in jobs)
                hosted.queue.ran_out_of_memory(cost.total)
                self._instruments.count_out_of_memory(hosted.name, batch.device)
            if len(jobs) > 1 and not isinstance(exc, ModelFault):
                middle = len(jobs) // 2
                return jobs[:middle], jobs[middle:]
            log.error("batch failed", extra={"model": hosted.name}, exc_info=exc)
            await self._check(batch, slot, exc)
            outcomes = [call_fault(hosted.name)] * len(jobs)
        slot.since = self.scheduler.progress = now = self.clock()
        results = [
            JobResult(outcome, job.waited_s, now - began, job.batch_span)
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]
        gap_s = batch.gap_s if jobs[0] is batch.jobs[0] else 0.0  # it came before the first part
        answer(hosted.name, hosted.queue, jobs, results, self._instruments, gap_s)
        self._instruments.count_batch(hosted.name, len(jobs), now - began)
        return ()

    def _fail(self, hosted: LocalModel, jobs: Sequence[Job], reason: ScoregateError) -> None:
        """End *jobs* of *hosted*, which run or wait, with *reason*."""
        fail(hosted.name, hosted.queue, jobs, reason, self._instruments)

    async def _check(self, batch: RunningBatch[Model], slot: ExecutionSlot, exc: Exception) -> None:
        """Raise `Broken` if the example call, which worked at the start, fails now."""
        try:
            example = batch.copy.prepare(batch.copy.example())
            [outcome] = await slot.score(batch.copy, [example], batch.threads)
        except Exception as worse:
            outcome = worse
        outcome = checked(batch.hosted.name, outcome)
        if isinstance(outcome, Exception) and not is_out_of_memory(outcome):
            fault = f"{type(exc).__name__}: {exc}".partition("\n")[0]
            raise Broken(
                f"the model {batch.hosted.name} fails on every call since this error: {fault}"
            ) from exc

    def _take_out(self, device: Device, batch: RunningBatch[Model], jobs: Sequence[Job], exc: Broken) -> None:
        """
        Remove *device*, which fails permanently, from its models, and retry *jobs* of *batch* elsewhere.

        If a model has no other device, the pool closes.
        """
        log.critical("device broken", extra={"device": device.name}, exc_info=exc)
        device.fault, reason = str(exc), ModelFault(str(exc))
        had = [each for each in self.hosted_models if each.copies.pop(device.name, None)]
        for hosted in had:
            self._instruments.device_up.labels(hosted.name, device.name).set(0)
        if not self._closed and not all(each.copies for each in had):
            self._on_broken(str(exc))
            self._close(reason)
        ended = []
        for job in jobs:
            job.losses += 1
            retried = not self._closed and job.losses < MAX_LOST_DEVICES
            if not (retried and batch.hosted.queue.put_back(job)):
                ended.append(job)
        self._fail(batch.hosted, ended, reason)

    def _close(self, reason: ScoregateError) -> None:
        """Begin no more batches, and end waiting calls with *reason*."""
        self._closed = True
        self._work.set()
        self._ended.set()
        for hosted in self.hosted_models:
            self._instruments.model_ready.labels(hosted.name).set(0)
            self._fail(hosted, hosted.queue.take_all(self.clock()), reason)


@contextmanager
def batch_span(batch: Sequence[Job], model: str) -> Iterator[None]:
    """
    Record the batch while the context is open; the trace of one of its calls is recorded.

    The span is in the trace of the first such call, with links to all; the calls keep its traceparent.  A
    trace of its own would be sampled independently of the requests' traces.
    """
    spans = recorded(batch)
    links = [span.traceparent for span in spans]
    with spans[0].child("batch", links, model=model, calls=len(batch)) as made:
        for job in batch:
            job.batch_span = made.traceparent
        yield


def add_batch_span(batch: Sequence[Job], model: str, device: str, began: float, ended: float) -> str:
    """Record a batch that ran in another process as `batch_span` does; return its traceparent, or ""."""
    spans = recorded(batch)
    if not spans:
        return ""
    links = [span.traceparent for span in spans]
    return spans[0].add("batch", began, ended, links, model=model, device=device, calls=len(batch))


def recorded(batch: Sequence[Job]) -> list[Span]:
    """Return the distinct spans of *batch* that are recorded."""
    return list(dict.fromkeys(job.span for job in batch if job.span.recording))
