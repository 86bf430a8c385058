"""A handle: how a metric calls one model, and when a request waits for room; equal calls are one job."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

from models.core.calls import Call, decoding_s, images_in_use
from models.core.contract import ModelInfo
from models.core.outcomes import CallResult
from service.core.concurrency.tasks import Tasks
from service.core.errors import (
    DeadlineExceeded,
    Draining,
    LaneFull,
    Overloaded,
    ScoregateError,
    TooLarge,
)
from service.core.lanes import BULK, INTERACTIVE
from service.core.retry_after import QueuedWork, expected_wait_s
from service.observability.tracing import Span
from service.serving.admission import Demand, Place
from service.serving.backends.contract import LOADED_STATE, Backend, not_prepared
from service.serving.cache import NO_CACHE, Cache
from service.serving.context import Context
from service.serving.job import Job, JobResult, Promise, all_done

log = logging.getLogger("scoregate.models")

CAUTION_FACTOR = 1.15  # factor on predicted times: a result after the deadline is wasted work
RECHECK_S = 0.25
BULK_KEPT_S = 10.0  # how long a bulk call without callers is kept: trainers retry the same body


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """Jobs that are prepared together, and the task that does so."""

    jobs: Sequence[Job]
    preparing: "asyncio.Task[None]"


class Handle:
    """
    One configured model, with its cache and its unfinished jobs.

    When all callers of a job have left, interactive work is cancelled, and bulk work is kept for
    `BULK_KEPT_S`.

    Args:
        cache: stores its outcomes; not used for a model without a revision.
        call_later: the event loop's by default.
        recheck_s: a request that waits for room checks again after it, if no call ends.
    """

    def __init__(
        self,
        backend: Backend,
        cache: Cache,
        call_later: Callable[[float, Callable[[], None]], object] | None = None,
        recheck_s: float = RECHECK_S,
    ) -> None:
        self.name, self.backend = backend.name, backend
        self._cache, self._call_later, self._recheck_s = cache, call_later, recheck_s
        self._jobs: dict[bytes, Job] = {}
        self._groups: dict[Job, PreparedGroup] = {}  # the group of each job that is being prepared
        self._preparing = Tasks()
        self._lines: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # a line of requests for each lane
        self._freed = asyncio.Event()  # a call has ended
        self._closed = False

    @property
    def info(self) -> ModelInfo:
        """The model that is loaded or served now."""
        return self.backend.info

    @property
    def under_way(self) -> int:
        """Number of calls that were begun and have no outcome yet."""
        return len(self._jobs)

    def admit(self, context: Context, demand: Demand) -> None:
        """
        Reject a request for which a full lane has no room, which would be late, or which is too much.

        Interactive work that should end after its deadline is rejected.  An idle model accepts what fits
        into one batch in any case: its cost is known roughly, and nothing waits behind it for long.

        Raises:
            LaneFull, Overloaded: interactive or bulk work; with the seconds until the lane will have
                drained, if other work is first.
            TooLarge: it exceeds the limit for one request.
        """
        backend, lane = self.backend, context.lane
        forecast = backend.forecast(lane, demand)
        if forecast.too_much:
            raise TooLarge(f"one request may not send so many calls to {self.name}; split it")
        if forecast.full:
            missing = backend.missing
            detail = f"{self.name}: {missing}" if missing else f"the {lane} lane of {self.name} is full"
            raise (LaneFull if lane == INTERACTIVE else Overloaded)(
                detail, retry_after_s=expected_wait_s(QueuedWork(forecast.drain_s))
            )
        done_s = (forecast.wait_s + forecast.run_s) * CAUTION_FACTOR
        left_s = context.deadline - asyncio.get_running_loop().time()
        late = lane == INTERACTIVE and done_s > left_s
        if late and (forecast.wait_s or backend.estimate(demand).batches > 1):
            detail = f"{self.name} would need {done_s:.1f} s, and {max(0.0, left_s):.1f} s are left"
            raise LaneFull(detail, retry_after_s=expected_wait_s(QueuedWork(forecast.drain_s)))

    async def wait_for_room(self, context: Context, demand: Demand, place: Place) -> None:
        """
        Wait until `admit` accepts a request: in the order of arrival, and until its deadline.

        The first request alone checks for room, whenever calls have ended, so that many requests cost no
        more than one.

        Args:
            place: taken if the request has to wait.

        Raises:
            LaneFull, Overloaded, DeadlineExceeded: there was no room before the deadline.
            Overloaded: the waiting room is full.
            TooLarge: the request exceeds the limit for one request.
        """
        line, refusal = self._lines[context.lane], ScoregateError()
        if line.locked():  # a request may not overtake earlier ones
            place.take()
            refusal = DeadlineExceeded(stage="queue")
        try:
            async with asyncio.timeout_at(context.deadline), line:
                while True:
                    try:
                        self.admit(context, demand)
                        return
                    except (LaneFull, Overloaded) as full:
                        refusal = full
                    place.take()
                    self._freed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._recheck_s):  # room may come in other ways, too
                            await self._freed.wait()
        except TimeoutError:
            raise refusal from None

    def used_by(self, context: Context) -> AbstractContextManager[None]:
        """Keep the model for a request until the context closes, before it goes."""
        return self.backend.presence.used_by(context.request)

    def shared_by(self, context: Context, work: Context) -> None:
        """Finish *work*, which other requests may have begun, before the model goes, if the request is."""
        self.backend.presence.share(context.request, work.request)

    async def idle(self) -> None:
        """Return when no call is under way, and the requests that are finished first have ended."""
        await self.backend.presence.unused()
        while self._jobs:
            await all_done([job.result for job in self._jobs.values()])

    async def aclose(self) -> None:
        """Answer the calls that are not prepared yet; the backend answers the others."""
        self._closed = True
        await self._preparing.cancel()
        for job in self._groups:  # a task that is cancelled before its first step runs nothing
            job.refuse(Draining())

    async def call(self, calls: Sequence[Call], context: Context) -> list[Any]:
        """
        Return one outcome per call, in order.

        A `ScoregateError` is returned as an outcome, so one failed call never cancels the others.  If
        *context* is promoted, so are all of its calls.  Calls whose model is replaced before they start
        have the outcome `ModelChanged`.

        Raises:
            Draining: the handle is closed.
            NotReady: the model has been taken away, and its calls do not wait.
            ModelChanged: the request has used another model by this name.
        """
        if self._closed:
            raise Draining
        if self.backend.presence.state != LOADED_STATE:
            await self.backend.presence.wait(context.request)
        model = self.backend.info
        # The key has the name, since two configured models may have one id and revision.
        keys = [call.key((self.name, *model.identity)) for call in calls]
        context.use(self.name, model)
        cache = self._cache if model.revision else NO_CACHE
        outcomes: list[Any] = [None] * len(keys)
        if cache.stores and any(call.cacheable for call in calls):
            context.calls.stage = "decode"
            outcomes = list(await cache.find(keys))
        missing = [index for index, outcome in enumerate(outcomes) if outcome is None]
        if missing and self._closed:  # it was closed while they were looked up
            raise Draining
        jobs, new = dict[int, Job](), list[Job]()
        for index in missing:
            jobs[index] = self._joined(keys[index], calls[index], model, cache, context, new)
        for index, call in enumerate(calls):
            status = "hit" if index not in jobs else "miss" if jobs[index] in new else "coalesced"
            if call.cacheable and (status != "miss" or cache.stores):
                context.looked_up("scores", status)
        if new:
            preparing = self._preparing.start(self._prepare_and_start(new, context))
            self._groups |= dict.fromkeys(new, PreparedGroup(new, preparing))
        else:
            context.queued(self.name)
        for index, result in zip(jobs, await self._wait([*jobs.values()], context), strict=True):
            outcomes[index] = result.outcome
        for outcome in outcomes:
            if share := getattr(outcome, "unknown", 0.0):
                context.calls.unknown.append(share)
        return outcomes

    def _joined(
        self, key: bytes, call: Call, model: ModelInfo, cache: Cache, context: Context, new: list[Job]
    ) -> Job:
        """Return the job under *key* with one more caller; a new one is added to *new*."""
        job = self._jobs.get(key)
        if job is None:
            job = Job(None, context.lane, deadline=context.deadline, call=call, model=model)
            job.span, job.request_id = context.span, context.request_id
            self._jobs[key] = job
            job.result.add_done_callback(partial(self._ended, key))
            if call.cacheable and cache.stores:
                job.result.add_done_callback(partial(keep, cache, key))
            new.append(job)
        job.join(context.lane, context.deadline)
        return job

    def _ended(self, key: bytes, result: Promise[JobResult]) -> None:
        """Forget a job that has its result or was cancelled."""
        del self._jobs[key]
        self._freed.set()

    async def _prepare_and_start(self, jobs: list[Job], context: Context) -> None:
        """
        Prepare a group and queue it in one step, so that it shares batches.

        Afterwards each job of the group has been queued or answered, even after an exception.
        """
        fault: ScoregateError | None = None
        try:
            since, calls = context.since, [job.call for job in jobs if job.call is not None]
            context.queued(self.name)  # the backend counts them while it prepares them
            with images_in_use(calls):  # their requests may end before
                prepared = await self.backend.prepare(calls, context.lane)
                prepared_s = monotonic() - since - decoding_s(calls, since)
            for job, made in zip(jobs, prepared, strict=True):
                job.prepared_s = prepared_s
                if not job.result.done():  # without a result, callers still wait
                    self.backend.start_or_refuse(job, made)
        except Exception as exc:
            fault = not_prepared(self.name, exc)
            log.error("group not prepared", extra={"model": self.name}, exc_info=exc)
        finally:
            for job in jobs:
                del self._groups[job]
                if job.prepared is None:
                    job.refuse(fault or Draining())  # the task is cancelled: the event loop ends

    async def _wait(self, jobs: Sequence[Job], context: Context) -> list[JobResult]:
        """Wait for the results of *jobs* as one caller, record their timings, and return them."""
        if not jobs:
            return []
        since, lane, waiting = monotonic(), context.lane, [job.result for job in jobs]

        def promote() -> None:
            nonlocal lane
            before, lane = lane, INTERACTIVE
            for job in jobs:
                job.join(lane)
                job.leave(before)

        try:
            with context.promoting(promote):
                await all_done(waiting)
        except asyncio.CancelledError:
            context.calls.stage = stage(jobs)
            for job in jobs:
                self._leave(job, lane)
            raise
        results = [each.result() for each in waiting]
        for job, result in zip(jobs, results, strict=True):
            if result.decoded_s:  # a replica decoded the images
                context.spent("decode", result.decoded_s)
            context.spent("prepare", job.prepared_s + result.prepared_s)
            context.spent("queue", result.waited_s)
            context.spent("model", result.ran_s)
        if context.span.recording:
            add_spans(context.span, self.name, jobs, since)
        return results

    def _leave(self, job: Job, lane: str) -> None:
        """Remove one caller of *job*; without any, bulk work is kept for `BULK_KEPT_S`."""
        if job.result.done():
            return
        job.leave(lane)
        if any(job.callers.values()):
            return
        loop = asyncio.get_running_loop()
        job.deadline = kept_until = loop.time() + BULK_KEPT_S
        if job.lane == BULK and not self._closed:
            (self._call_later or loop.call_later)(BULK_KEPT_S, partial(self._drop, job, kept_until))
        else:
            self._drop(job, kept_until)

    def _drop(self, job: Job, kept_until: float) -> None:
        """
        Stop the work, unless callers came meanwhile: others leave it with a later deadline.

        A group's preparation stops with its last job.
        """
        if any(job.callers.values()) or job.deadline != kept_until or job.result.done():
            return
        job.cancel()
        group = self._groups.get(job)
        if group is not None and all(each.result.done() for each in group.jobs):
            group.preparing.cancel()


def keep(cache: Cache, key: bytes, result: Promise[JobResult]) -> None:
    """Store the outcome of a job, unless it failed or was cancelled."""
    if not result.cancelled() and isinstance(outcome := result.result().outcome, CallResult):
        cache.keep(key, outcome)


def stage(jobs: Sequence[Job]) -> str:
    """Return the stage that a group has reached: "decode", "queue" or "model"."""
    if any(job.running for job in jobs):
        return "model"
    return "queue" if any(job.prepared is not None for job in jobs) else "decode"


@contextmanager
def used(handles: Iterable[Handle], context: Context) -> Iterator[None]:
    """Keep several models for a request, see `Handle.used_by`."""
    with ExitStack() as stack:
        for handle in handles:
            stack.enter_context(handle.backend.presence.used_by(context.request))
        yield


def add_spans(span: Span, model: str, jobs: Sequence[Job], since: float) -> None:
    """
    Add to *span* how long *jobs* waited and ran: a pair of spans for each batch that they were in.

    A call that another request began is shown from *since*, by `time.monotonic`.
    """
    batches: dict[str | Job, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.result.result().ran_s:  # a batch took it
            batches[job.result.result().batch_span or job].append(job)
    for batch, served in batches.items():
        results = [job.result.result() for job in served]
        ended = max(job.answered for job in served)
        began = ended - max(result.ran_s for result in results)
        queued = began - max(result.waited_s for result in results)
        span.add("queue", max(since, queued), max(since, began), model=model, calls=len(served))
        links = [batch] if isinstance(batch, str) else []
        span.add("model", max(since, began), ended, links, model=model, calls=len(served))
