"""Runs batches and answers their calls; a batch that fails is split, see `BatchRunner.score`."""

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from models.core.contract import Model, ModelError
from models.core.outcomes import CallResult
from service.core.errors import ModelFault
from service.observability.instruments import Instruments
from service.observability.tracing import Span
from service.serving.batcher.device import ExecutionSlot, is_out_of_memory
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import RunningBatch, Scheduler
from service.serving.job import Job, JobResult

log = logging.getLogger("scoregate.device")


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
        for call in batch:
            call.batch = made.traceparent
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
    return list(dict.fromkeys(call.span for call in batch if call.span.recording))


def answer(
    name: str,
    queue: Queue,
    calls: Sequence[Job],
    results: Sequence[JobResult],
    instruments: Instruments,
    gap_s: float = 0.0,
) -> None:
    """
    Check the results of *calls* that the model *name* has answered, learn from them, count and set them.

    Batches of this process, of a model server and of replicas all end here.  The cost model learns from calls
    that succeeded: how soon one fails is no measure of the work.

    Args:
        queue: in which they waited.
        results: those of a batch have its seconds as `ran_s`, which no two batches share.
        gap_s: see `CostModel.observe`.
    """
    checked, costs = list[JobResult](), defaultdict[float, int](int)
    for call, result in zip(calls, results, strict=True):
        match result.outcome:
            case ModelError() as error:
                result = replace(result, outcome=ModelFault(str(error)))
            case CallResult() as outcome if not outcome.is_finite():
                fault = ModelFault(f"the model {name} returned a number that is not finite")
                result = replace(result, outcome=fault)
        if not isinstance(result.outcome, Exception):
            costs[result.ran_s] += call.prepared.cost
        checked.append(result)
    for ran_s, cost in costs.items():
        queue.finished(cost, ran_s, gap_s)
    for call, result in zip(calls, checked, strict=True):
        gone = call.result.done()
        instruments.count_call(name, call.lane, result.outcome, result.waited_s, gone=gone)
        call.finish(result)


class Broken(Exception):
    """The example call, which worked at the start, fails now."""


class BatchRunner:
    """Runs batches on execution slots, and answers their calls on the event loop."""

    def __init__(
        self, scheduler: Scheduler[Model], instruments: Instruments, clock: Callable[[], float]
    ) -> None:
        self._scheduler, self._instruments, self._clock = scheduler, instruments, clock

    async def score(self, batch: RunningBatch[Model], calls: list[Job], slot: ExecutionSlot) -> None:
        """Run *calls* of a batch, and answer them; after an exception, run halves down to the bad call."""
        hosted, began = batch.hosted, self._clock()
        cost = sum(call.prepared.cost for call in calls)
        for call in calls:
            call.begin(began)
        try:
            traced = any(call.span.recording for call in calls)
            with batch_span(calls, hosted.name) if traced else nullcontext():
                outcomes = await slot.score(batch.copy, [call.prepared for call in calls], batch.threads)
            if len(outcomes) != len(calls):
                raise ModelFault(f"the model returned {len(outcomes)} outcomes for {len(calls)} calls")
        except Exception as exc:
            if is_out_of_memory(exc):
                hosted.queue.ran_out_of_memory(cost)
                self._instruments.count_out_of_memory(hosted.name, batch.device)
            if len(calls) > 1 and not isinstance(exc, ModelFault):
                middle = len(calls) // 2
                await self.score(batch, calls[:middle], slot)
                await self.score(batch, calls[middle:], slot)
                return
            log.error("batch failed", extra={"model": hosted.name}, exc_info=exc)
            await self._check(batch, slot, exc)
            outcomes = [ModelFault(f"the model {hosted.name} failed on this call")] * len(calls)
        slot.since = self._scheduler.progress = now = self._clock()
        self._instruments.count_batch(hosted.name, len(calls), now - began)
        results = [
            JobResult(outcome, call.waited_s, now - began, call.batch)
            for call, outcome in zip(calls, outcomes, strict=True)
        ]
        answer(hosted.name, hosted.queue, calls, results, self._instruments, batch.gap_s)

    async def _check(self, batch: RunningBatch[Model], slot: ExecutionSlot, exc: Exception) -> None:
        """Raise `Broken` if the example call, which worked at the start, fails now."""
        try:
            example = batch.copy.prepare(batch.copy.example())
            [outcome] = await slot.score(batch.copy, [example], batch.threads)
        except Exception as worse:
            outcome = worse
        if isinstance(outcome, Exception) and not is_out_of_memory(outcome):
            fault = f"{type(exc).__name__}: {exc}".partition("\n")[0]
            raise Broken(
                f"the model {batch.hosted.name} fails on every call since this error: {fault}"
            ) from exc
