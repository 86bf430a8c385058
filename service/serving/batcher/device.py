"""A device: runs the batches of its models, one at a time, or on a CPU as `CpuPolicy` allows."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Self

from models.core.contract import Model, ModelError, Prepared
from models.core.outcomes import CallResult
from service.core.errors import Draining, ModelFault, ScoregateError
from service.core.lanes import LANES
from service.observability.instruments import Instruments
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.batch_span import batch_span
from service.serving.batcher.cpu_policy import CpuPolicy, compute_on_one_core
from service.serving.batcher.execution_slot import ExecutionSlot, is_out_of_memory
from service.serving.batcher.scheduler import HostedModel, RunningBatch, Scheduler
from service.serving.batcher.warm_up import warm_up

log = logging.getLogger("scoregate.device")

LocalModel = HostedModel[Model]


class Broken(Exception):
    """The example call, which worked at the start, fails now."""


class Device:
    """
    Runs the batches of its models.  Decisions and answers happen on the event loop.

    Args:
        cpu: the cores of a CPU; None for a GPU, which runs one batch at a time.
        on_broken: called once with the reason if the device cannot continue; the process should end then.
        clock: in seconds.
    """

    def __init__(
        self,
        residents: Sequence[LocalModel],
        instruments: Instruments,
        *,
        cpu: CpuPolicy | None = None,
        on_broken: Callable[[str], None] = lambda reason: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.residents = tuple(residents)
        self._instruments, self._on_broken, self.clock = instruments, on_broken, clock
        self.scheduler = Scheduler(self.residents, clock())
        self._work = asyncio.Event()  # calls have arrived or are prepared, or a batch has ended
        self._closed = self._leaving = False
        self._cpu = cpu
        self._slots = [ExecutionSlot(threads) for threads in (cpu.slots if cpu else [1])]
        self._tasks: list[asyncio.Task[None]] = []
        for resident in self.residents:
            instruments.stalled.labels(resident.name).set_function(self.stalled_for)
            for lane in LANES:
                depth = instruments.queue_depth.labels(resident.name, lane)
                depth.set_function(partial(resident.queue.depth, lane))

    async def __aenter__(self) -> Self:
        """Score every model's example, then start serving."""
        for resident in self.residents:
            await self._warm(resident)
            self._instruments.model_ready.labels(resident.name).set(1)
        compute_on_one_core()
        self._tasks = [asyncio.create_task(self._run(slot)) for slot in self._slots]
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Finish running batches, and answer waiting calls with `Draining`."""
        self._closed = self._leaving = True
        self._work.set()
        await asyncio.gather(*self._tasks)
        for slot in self._slots:
            slot.close()
        self._show_not_ready()

    def _show_not_ready(self) -> None:
        for resident in self.residents:
            self._instruments.model_ready.labels(resident.name).set(0)

    async def _warm(self, resident: LocalModel) -> None:
        """Warm the model up on each slot that it uses; last on the first one, which has all cores."""
        slots = self._slots if resident.model.info.reentrant else self._slots[:1]
        cost, seconds = await warm_up(resident.name, resident.model, slots[::-1], self.clock)
        resident.queue.finished(cost, seconds)

    # --- calls arrive ---------------------------------------------------------------------------

    def submit(
        self, resident: LocalModel, prepared: Prepared, lane: str, deadline: float = inf
    ) -> QueuedCall:
        """Queue one call of *resident*.  Raises `Draining` if the device is closed."""
        if self._closed:
            raise Draining
        call = QueuedCall(prepared, lane, self.clock(), deadline)
        self.scheduler.put(resident, call)
        self._work.set()
        return call

    @contextmanager
    def expecting(self, resident: LocalModel, lane: str, calls: int) -> Iterator[None]:
        """Count *calls* of *resident* as being prepared while the context is open."""
        try:
            with resident.queue.pending.expecting(lane, calls, self.clock):
                yield
        finally:
            self._work.set()

    def stalled_for(self) -> float:
        """Return the seconds since the last finished batch while work waits or runs; 0 if idle."""
        if not self.running and not self._leaving:
            return inf  # the loop ended by itself
        now = self.clock()  # one slot may hang while others answer
        return max(self.scheduler.stalled_s(now), *(now - slot.since for slot in self._slots))

    @property
    def running(self) -> bool:
        """True while the device serves."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    # --- the loop -------------------------------------------------------------------------------

    async def _run(self, slot: ExecutionSlot) -> None:
        batch: RunningBatch[Model] | None = None
        reason: ScoregateError = Draining()
        try:
            while not self._closed:
                resident = self.scheduler.next()
                if resident is None or not self._may_begin(resident, slot):
                    await self._wait_for_work(inf)
                    continue
                await self._fill(resident)
                if not self._may_begin(resident, slot):  # another slot was faster
                    continue
                urgent = self.scheduler.is_urgent(resident)
                if batch := self.scheduler.begin(resident, self.clock(), urgent=urgent):
                    await self._run_batch(batch, slot)
                else:  # all callers have left
                    await asyncio.sleep(0)
        except Broken as exc:
            reason = ModelFault(str(exc))
            log.critical("device broken", exc_info=exc)
            self._on_broken(str(exc))
        finally:  # even after an unexpected exception no caller may wait forever
            self._closed = True
            self._work.set()
            now = self.clock()
            waiting = [call for resident in self.residents for call in resident.queue.take_all(now)]
            for call in (*(batch.calls if batch else ()), *waiting):
                call.answer(reason)
            if not self._leaving:
                self._show_not_ready()

    def _may_begin(self, resident: LocalModel, slot: ExecutionSlot) -> bool:
        urgent = self.scheduler.is_urgent(resident)
        return not self._cpu or self._cpu.may_begin(resident, first=slot is self._slots[0], urgent=urgent)

    async def _run_batch(self, batch: RunningBatch[Model], slot: ExecutionSlot) -> None:
        slot.since = self.clock()
        assigned = self._cpu.assign(batch, self.residents) if self._cpu else nullcontext((1, 1.0))
        with assigned as (slot.threads, share):
            await self._score(batch, batch.calls, slot, share)
            self.scheduler.end(batch, self.clock(), share)
        slot.since = inf
        self._work.set()

    async def _fill(self, resident: LocalModel) -> None:
        """Wait for more calls, see `Scheduler.waits_until`."""
        known, since = resident.queue.pending.groups, self.clock()
        while not self._closed:
            left_s = self.scheduler.waits_until(resident, known, since) - self.clock()
            if left_s <= 0:
                return
            await self._wait_for_work(left_s)

    async def _wait_for_work(self, seconds: float) -> None:
        """Return when there may be work, after *seconds* at the latest."""
        self._work.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if seconds < inf else None):
                await self._work.wait()

    async def _score(
        self, batch: RunningBatch[Model], calls: list[QueuedCall], slot: ExecutionSlot, share: float
    ) -> None:
        """
        Run *calls* of a batch and answer them; after an exception, run halves until the bad call is alone.

        Args:
            share: of the device.  The cost model learns nothing from a batch without one: it shares its
                cores with others.
        """
        resident, began = batch.resident, self.clock()
        cost = sum(call.prepared.cost for call in calls)
        for call in calls:
            call.begin(began)
        try:
            with batch_span(calls, resident.name):
                outcomes = await slot.score(resident.model, [call.prepared for call in calls])
            if len(outcomes) != len(calls):
                raise ModelFault(f"the model returned {len(outcomes)} outcomes for {len(calls)} calls")
        except Exception as exc:
            if is_out_of_memory(exc):
                resident.queue.ran_out_of_memory(cost)
                self._instruments.out_of_memory.labels(resident.name).inc()
            if len(calls) > 1 and not isinstance(exc, ModelFault):
                middle = len(calls) // 2
                await self._score(batch, calls[:middle], slot, share)
                await self._score(batch, calls[middle:], slot, share)
                return
            log.error("batch failed", extra={"model": resident.name}, exc_info=exc)
            await self._check(resident, slot, exc)
            outcomes = [ModelFault(f"the model {resident.name} failed on this call")] * len(calls)
        else:
            if share:
                resident.queue.finished(cost, share * (self.clock() - began), batch.gap_s)
        self._answer(resident.name, calls, outcomes, self.clock() - began)
        slot.since = self.clock()

    async def _check(self, resident: LocalModel, slot: ExecutionSlot, exc: Exception) -> None:
        """Raise `Broken` if the example call, which worked at the start, fails now."""
        try:
            example = resident.model.prepare(resident.model.example())
            [outcome] = await slot.score(resident.model, [example])
        except Exception as worse:
            outcome = worse
        if isinstance(outcome, Exception) and not is_out_of_memory(outcome):
            fault = f"{type(exc).__name__}: {exc}".partition("\n")[0]
            raise Broken(f"the model {resident.name} fails on every call since this error: {fault}") from exc

    def _answer(self, name: str, calls: list[QueuedCall], outcomes: Sequence[Any], ran_s: float) -> None:
        self.scheduler.answered(self.clock())
        self._instruments.count_batch(name, len(calls), ran_s)
        for call, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, ModelError):
                outcome = ModelFault(str(outcome))
            elif isinstance(outcome, CallResult) and not outcome.is_finite():
                outcome = ModelFault(f"the model {name} returned a number that is not finite")
            gone = call.result.done()
            self._instruments.count_call(name, call.lane, outcome, call.waited_s, gone=gone)
            call.answer(outcome, ran_s)
