"""
A device, which runs the batches of every model on it.

One batch runs at a time; on two cores two may, with one core each, and on any CPU urgent calls beside bulk
calls.  Deciding and answering happen on the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Self

from models.core.contract import Model, ModelError, Prepared
from models.core.outcomes import CallResult
from service.core.errors import Draining, ModelFault, ScoregateError
from service.core.lanes import LANES
from service.observability.instruments import Instruments
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.batch_span import batch_span
from service.serving.batcher.cores import compute_on_one_core, is_out_of_memory
from service.serving.batcher.execution_slot import Cores, ExecutionSlot
from service.serving.batcher.scheduler import HostedModel, RunningBatch, Scheduler
from service.serving.batcher.warm_up import warm_up
from service.serving.contract import AdmissionForecast, WorkEstimate
from service.serving.demand import Demand

log = logging.getLogger("scoregate.device")

LocalModel = HostedModel[Model]


class Broken(Exception):
    """A device can't go on: what worked at the start fails now."""


class Device:
    """
    Runs the batches of its residents, each in its turn.

    Args:
        cores: that its batches compute with.  With one of them, one batch runs at a time.
        on_broken: told once, in one line, when a fault sticks; the process should end then.
        clock: seconds, the event loop's by default.
    """

    def __init__(
        self,
        residents: Sequence[LocalModel],
        instruments: Instruments,
        *,
        cores: int = 1,
        on_broken: Callable[[str], None] = lambda reason: None,
        shares: Shares | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.residents = tuple(residents)
        self._instruments, self._on_broken, self._clock = instruments, on_broken, clock
        self._scheduler = Scheduler(self.residents, shares or Shares(), clock())
        self._work = asyncio.Event()  # something has come or become ready
        self._closed = self._leaving = False
        self._cores = Cores(cores)
        beside = {1: 0, 2: 2}.get(cores, 1)  # another full batch, and urgent calls
        self._places = [ExecutionSlot(cores), *(ExecutionSlot(1) for _ in range(beside))]
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
        self._tasks = [asyncio.create_task(self._run(place)) for place in self._places]
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new, answer what waits with `Draining`, and stop."""
        self._closed = self._leaving = True
        self._work.set()
        await asyncio.gather(*self._tasks)
        for place in self._places:
            place.close()
        self._show_not_ready()

    def _show_not_ready(self) -> None:
        for resident in self.residents:
            self._instruments.model_ready.labels(resident.name).set(0)

    async def _warm(self, resident: LocalModel) -> None:
        """Where it will run; at the first place, which has all cores, last."""
        places = self._places if resident.model.info.reentrant else self._places[:1]
        cost, seconds = await warm_up(resident.name, resident.model, places[::-1], self._clock)
        resident.queue.finished(cost, seconds)

    # --- what waits -----------------------------------------------------------------------------

    def submit(
        self, resident: LocalModel, prepared: Prepared, lane: str, deadline: float = inf
    ) -> QueuedCall:
        """Queue one call of *resident*.  Raises `Draining` where the device takes no more."""
        if self._closed:
            raise Draining
        call = QueuedCall(prepared, lane, self._clock(), deadline)
        self._scheduler.put(resident, call)
        self._work.set()
        return call

    @contextmanager
    def expecting(self, resident: LocalModel, lane: str, calls: int) -> Iterator[None]:
        """While this is open, so many calls of *resident* are being prepared."""
        try:
            with resident.queue.pending.expecting(lane, calls, self._clock):
                yield
        finally:
            self._work.set()

    def wait_s(self, lane: str) -> float:
        """Predicted seconds in which what waits in *lane* now will have been done."""
        return self._scheduler.wait_s(lane, self._clock())

    def outlook(self, resident: LocalModel, lane: str, demand: Demand | None) -> AdmissionForecast:
        """What a request, or one call of it, would meet."""
        return self._scheduler.outlook(resident, lane, demand, self._clock())

    def extent(self, resident: LocalModel, demand: Demand) -> WorkEstimate:
        """What *demand* comes to."""
        return self._scheduler.extent(resident, demand)

    def stalled_for(self) -> float:
        """Seconds since the last finished batch while work waits or runs; 0 when idle."""
        if not self.running and not self._leaving:
            return inf  # the loop ended by itself
        now = self._clock()  # one batch may hang while others beside it are answered
        return max(self._scheduler.stalled_s(now), *(now - place.since for place in self._places))

    @property
    def running(self) -> bool:
        """Whether batches are being run."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    # --- the loop -------------------------------------------------------------------------------

    async def _run(self, place: ExecutionSlot) -> None:
        turn: RunningBatch[Model] | None = None
        reason: ScoregateError = Draining()
        try:
            while not self._closed:
                resident = self._scheduler.next()
                if resident is None or not self._may_begin(resident, place):
                    await self._wait_for_work(inf)
                    continue
                await self._fill(resident)
                if not self._may_begin(resident, place):  # the other one was faster
                    continue
                urgent = self._scheduler.is_urgent(resident)
                if turn := self._scheduler.begin(resident, self._clock(), urgent=urgent):
                    await self._take(turn, place)
                else:  # all had left, and are discounted by callbacks that have yet to run
                    await asyncio.sleep(0)
        except Broken as exc:
            reason = ModelFault(str(exc))
            log.critical("device broken", exc_info=exc)
            self._on_broken(str(exc))
        finally:  # however the loop ends, nobody is left waiting
            self._closed = True
            self._work.set()
            now = self._clock()
            waiting = [call for resident in self.residents for call in resident.queue.take_all(now)]
            for call in (*(turn.batch if turn else ()), *waiting):
                call.answer(reason)
            if not self._leaving:
                self._show_not_ready()

    def _may_begin(self, resident: LocalModel, place: ExecutionSlot) -> bool:
        """
        Whether the next batch of *resident* may begin now, at *place*.

        Urgent calls do not wait for bulk calls: they take turns with them on the cores.  Else a batch may
        begin beside another one where it is full: two small ones would take longer than one.  What runs alone
        runs at the first place, which so is the only one to have OpenMP's helpers, see `compute_on_one_core`.
        """
        if self._cores.unused:
            return place is self._places[0]
        if not resident.model.info.reentrant:
            return False
        full = bool(self._cores.free) and resident.queue.fills_a_batch
        return full or self._scheduler.is_urgent(resident)

    async def _take(self, turn: RunningBatch[Model], place: ExecutionSlot) -> None:
        """Run the batch of *turn* with as many cores as it should have."""
        alone, cores = self._cores.unused, self._cores
        place.cores, place.since = self._cores_for(turn) if alone else 1, self._clock()
        held = place.cores if self._divides(turn.resident) else cores.all  # by one that began alone
        with cores.taken(held if alone else cores.free) as share:  # one is, or none
            await self._score(turn, turn.batch, place, share)
            self._scheduler.end(turn, self._clock(), share)
        place.since = inf
        self._work.set()

    def _divides(self, resident: LocalModel) -> bool:
        """Whether full batches of *resident* run beside each other."""
        return self._cores.all == 2 and resident.model.info.reentrant

    def _cores_for(self, turn: RunningBatch[Model]) -> int:
        """
        Of a batch that runs alone: half of the cores where another one can have the rest; else all, or all
        but those of threads that have to decode for more than half as long as this batch takes.
        """
        cores, queue = self._cores, turn.resident.queue
        if self._divides(turn.resident) and queue.fills_a_batch:
            return cores.half
        pending = [each.queue.pending for each in self.residents]
        run_s = queue.cost_model.run_s(sum(call.prepared.cost for call in turn.batch))
        if sum(each.takes_s for each in pending) <= run_s / 2:
            return cores.all
        return max(cores.half, cores.all - sum(each.under_way for each in pending))

    async def _fill(self, resident: LocalModel) -> None:
        """Let a batch that is not full wait for as long as that pays, see `Scheduler.waits_until`."""
        known, since = resident.queue.pending.groups, self._clock()
        while not self._closed:
            left_s = self._scheduler.waits_until(resident, known, since) - self._clock()
            if left_s <= 0:
                return
            await self._wait_for_work(left_s)

    async def _wait_for_work(self, seconds: float) -> None:
        """Return when something has come or become ready, after *seconds* at the latest."""
        self._work.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds if seconds < inf else None):
                await self._work.wait()

    async def _score(
        self, turn: RunningBatch[Model], batch: list[QueuedCall], place: ExecutionSlot, share: float
    ) -> None:
        """
        Run a batch, or a half of one, and answer it; halve it until the bad call stands alone.

        Args:
            share: of the device that the batch has; that much of its time is the device's.  Nothing is
                learnt from one without: it takes turns with others.
        """
        resident, began = turn.resident, self._clock()
        cost = sum(call.prepared.cost for call in batch)
        for call in batch:
            call.begin(began)
        try:
            with batch_span(batch, resident.name):
                outcomes = await place.score(resident.model, [call.prepared for call in batch])
            if len(outcomes) != len(batch):
                raise ModelFault(f"the model returned {len(outcomes)} outcomes for {len(batch)} calls")
        except Exception as exc:
            if is_out_of_memory(exc):
                resident.queue.ran_out_of_memory(cost)
                self._instruments.out_of_memory.labels(resident.name).inc()
            if len(batch) > 1 and not isinstance(exc, ModelFault):
                middle = len(batch) // 2
                await self._score(turn, batch[:middle], place, share)
                await self._score(turn, batch[middle:], place, share)
                return
            log.error("batch failed", extra={"model": resident.name}, exc_info=exc)
            await self._check(resident, place, exc)
            outcomes = [ModelFault(f"the model {resident.name} failed on this call")] * len(batch)
        else:
            if share:
                resident.queue.finished(cost, share * (self._clock() - began), turn.gap_s)
        self._answer(resident.name, batch, outcomes, self._clock() - began)
        place.since = self._clock()

    async def _check(self, resident: LocalModel, place: ExecutionSlot, exc: Exception) -> None:
        """Raises `Broken` where even the example, which worked at the start, fails now."""
        try:
            example = resident.model.prepare(resident.model.example())
            [outcome] = await place.score(resident.model, [example])
        except Exception as worse:
            outcome = worse
        if isinstance(outcome, Exception) and not is_out_of_memory(outcome):
            fault = f"{type(exc).__name__}: {exc}".partition("\n")[0]
            raise Broken(f"the model {resident.name} fails on every call since this error: {fault}") from exc

    def _answer(self, name: str, batch: list[QueuedCall], outcomes: Sequence[Any], ran_s: float) -> None:
        self._scheduler.answered(self._clock())
        self._instruments.count_batch(name, len(batch), ran_s)
        for call, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, ModelError):
                outcome = ModelFault(str(outcome))
            elif isinstance(outcome, CallResult) and not outcome.is_finite():
                outcome = ModelFault(f"the model {name} returned a number that is not finite")
            gone = call.result.done()
            self._instruments.count_call(name, call.lane, outcome, call.waited_s, gone=gone)
            call.answer(outcome, ran_s)
