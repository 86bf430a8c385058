"""A model that another process serves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Self

from models.core.calls import Call
from models.core.contract import ModelError, Post, Prepared, RemoteModel, UpstreamError
from models.core.settings import RemoteSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.tasks import Tasks
from service.core.concurrency.watcher import Watcher
from service.core.errors import (
    CallRefused,
    Draining,
    Invalid,
    ModelFault,
    NotReady,
    ScoregateError,
    UpstreamFailed,
)
from service.core.lanes import BULK, INTERACTIVE, LANES
from service.observability.instruments import Instruments
from service.serving.backends.contract import Backend, prepare_all
from service.serving.backends.trust import LastCalls, Trust
from service.serving.backends.upstream import NO_ROUTE_STATUSES, Joined, Unreachable, Upstream, explained
from service.serving.batcher.batching import Queue, answer, call_fault, checked, fail
from service.serving.batcher.scheduler import Capacity, HostedModel, RunningBatch, Scheduler
from service.serving.job import Job, JobResult, Promise

log = logging.getLogger("scoregate.remote")

PRIORITY = {"interactive": "0", "bulk": "1"}  # vLLM runs lower numbers first
WATCH_S = 5.0
CHECK_S = 20.0  # timeout of the known questions in one check, also at the start


class RemoteBackend(Backend):
    """
    Sends calls one by one; the server batches them.

    At most `max_in_flight` calls are sent at a time.  The others wait in the two lanes by the rules of a
    device, with each call as a batch of its own.  A call's lane is sent as its priority.  The server is
    checked every few seconds for readiness only: calls are sent in any case.  After a start of the server,
    calls wait until it has answered known calls correctly.

    Args:
        queue: of the waiting calls, in batches of one.
        clock: in seconds.
    """

    changes = ("offload",)

    def __init__(
        self,
        name: str,
        model: RemoteModel,
        settings: RemoteSettings,
        upstream: Upstream,
        queue: Queue,
        *,
        cpu: Mapping[str, FairThreads],
        instruments: Instruments,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name, self.info, self.clock = name, model.info, clock
        self._hosted = HostedModel(name, model, queue)
        self._scheduler = Scheduler([self._hosted], clock(), {"": Capacity(settings.max_in_flight)})
        self.queues = [(self._scheduler, self._hosted)]
        self._missing, self._logged = "has not been checked yet", ""
        self._served, self._upstream = settings.model, upstream
        self._cpu, self._instruments = cpu, instruments
        self._sending = Tasks()
        for lane in LANES:
            instruments.queue_depth.labels(name, lane).set_function(partial(queue.depth.__getitem__, lane))
        self._closed, self._came_up = False, True
        self._trust = Trust(name, model.known_calls(), self._known, clock)
        self._last_calls = LastCalls()
        self._joined = Joined(model)
        self._required: dict[str, Sequence[Call]] = {}
        self._watcher = Watcher(self.look, WATCH_S, sleep)

    @property
    def missing(self) -> str:
        """The fault that the last check of the server or of the model found."""
        return self.presence.reason or self._missing or self._trust.fault

    @property
    def failing(self) -> str:
        """The fault of the last check, or of the last calls."""
        return self.missing or self._last_calls.reason

    async def __aenter__(self) -> Self:
        """Check the server, now and every few seconds."""
        await self._watcher.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Answer waiting calls with `Draining`, and close the connections."""
        self._closed, self._missing = True, "shutting down"
        self._instruments.model_ready.labels(self.name).set(0)
        await self._watcher.aclose()
        await self._trust.aclose()
        self._fail_waiting()
        await self._sending.cancel()
        await self._joined.aclose()
        await self._upstream.aclose()

    async def look(self) -> None:
        """Check that the server serves the model, and that the model answers known calls correctly."""
        self._missing = await self._upstream.missing(self._served)
        if self._missing:
            self._trust.doubted = self._came_up = True  # the next server may be another process
        else:
            await self._look_at_model()
        self._instruments.model_ready.labels(self.name).set(not self.missing)
        if (fault := self._missing or self._trust.fault) != self._logged:
            self._logged, level = fault, logging.WARNING if fault else logging.INFO
            log.log(level, "models.%s %s", self.name, fault or "is served again")

    async def _look_at_model(self) -> None:
        """Check the model if that is due, and retry the last failed call."""
        try:
            async with asyncio.timeout(CHECK_S):
                await self._trust.renew()
        except NotReady:
            return
        except (UpstreamError, TimeoutError) as exc:
            if self._trust.doubted:  # otherwise it is only busy
                self._missing = f"does not answer a known question: {explained(exc) or 'not in time'}"
            return
        if self._came_up:
            self._came_up = False
            for purpose, calls in self._required.items():
                await super().require(purpose, calls)
        if call := self._last_calls.take_due(self.clock()):
            with suppress(ModelError, UpstreamError):
                await self._answer(call, self._check(BULK))

    async def offload(self) -> None:
        """Put the server to sleep: a vLLM then keeps the weights in the host's memory."""
        await self._operate("../sleep?level=1")

    async def load(self, revision: str = "") -> None:
        """Wake the server up, and check its known calls; if they fail, put it to sleep again."""
        await self._operate("../wake_up")
        self._trust.doubted = True
        try:
            async with asyncio.timeout(CHECK_S):
                await self._trust.renew()
        except (NotReady, UpstreamError, TimeoutError) as exc:
            with suppress(ScoregateError):
                await self.offload()
            if isinstance(exc, NotReady):
                raise ModelFault(exc.detail) from exc
            reason = explained(exc) or "did not answer in time"
            raise UpstreamFailed(f"the server of {self.name} {reason}") from exc
        self._missing = ""  # the last check may be some seconds old

    async def _operate(self, path: str) -> None:
        """Post to one of vLLM's routes for operators.  Raises `Invalid`, `UpstreamFailed`."""
        try:
            await self._upstream.command(path)
        except UpstreamError as exc:
            if exc.status in NO_ROUTE_STATUSES:
                hint = "start vLLM with --enable-sleep-mode and VLLM_SERVER_DEV_MODE=1"
                raise Invalid(f"the server of {self.name} has no {path.strip('./')}: {hint}") from exc
            raise UpstreamFailed(f"the server of {self.name} {exc}") from exc

    async def require(self, purpose: str, calls: Sequence[Call]) -> None:
        """Check as any backend does, now and after each start of the server."""
        self._required[purpose] = calls
        if not self.missing:
            await super().require(purpose, calls)

    async def refusal(self, call: Call) -> str:
        """Return the server's reason: only the server can count the tokens."""
        try:
            await self._known(call)
        except ModelError as exc:
            return str(exc)
        except UpstreamError:
            pass
        return ""

    async def _known(self, call: Call) -> Any:
        """Return the outcome of one of the service's own calls.  Raises `ModelError`, `UpstreamError`."""
        prepared = await self._cpu[INTERACTIVE].run(self._hosted.model.prepare, call)
        return await self._hosted.model.answer(prepared, self._check(INTERACTIVE))

    def _check(self, lane: str) -> Post:
        """Return the way to the server for the service's own calls, which wait for no others."""
        return partial(self._upstream.post, headers={"X-Vllm-Priority": PRIORITY[lane]}, check=True)

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Prepare on one of the lane's CPU threads."""
        model = self._hosted.model
        with self.expecting(lane, len(calls)):
            return await self._cpu[lane].run(prepare_all, model.prepare, self.name, calls)

    def start(self, job: Job) -> None:
        """Queue the job, and send it if a slot is free."""
        if self._closed:
            raise Draining
        job.arrived = self.clock()
        self._scheduler.put(self._hosted, job)
        self._fill_slots()

    def _fail_waiting(self) -> None:
        """End waiting calls with `Draining`."""
        queue = self._hosted.queue
        fail(self.name, queue, queue.take_all(self.clock()), Draining(), self._instruments)

    def _fill_slots(self) -> None:
        """Send waiting calls while slots are free."""
        while self._scheduler.has_slot and not self._closed:
            try:
                batch = self._scheduler.begin(self._hosted, self.clock())
            except Exception as exc:  # no caller may wait forever
                log.error("calls not sent", extra={"model": self.name}, exc_info=exc)
                self._fail_waiting()
                return
            if batch is None:
                return
            [job] = batch.jobs
            job.begin(batch.began)
            task = self._sending.start(self._outcome(job))
            task.add_done_callback(partial(self._end, batch))
            job.result.add_done_callback(partial(abandon, task))

    def _end(self, batch: RunningBatch[RemoteModel], task: "asyncio.Task[Any]") -> None:
        """Answer the batch's only call, and send the next one."""
        [job], ended = batch.jobs, self.clock()
        outcome = Draining() if task.cancelled() else task.result()
        self._scheduler.end(batch, ended)
        result = JobResult(outcome, job.waited_s, ended - batch.began)
        answer(self.name, self._hosted.queue, [job], [result], self._instruments)
        self._fill_slots()

    async def _outcome(self, job: Job) -> Any:
        """Return the server's outcome, or the error that takes its place."""
        try:
            await self._trust.check()  # meanwhile the job may become interactive
            headers = {"X-Request-Id": job.request_id, "X-Vllm-Priority": PRIORITY[job.lane]}
            if job.span.traceparent:
                headers["traceparent"] = job.span.traceparent
            post, urgent = partial(self._upstream.post, headers=headers), job.lane == INTERACTIVE
            return await self._answer(job.prepared, post, urgent=urgent)
        except Exception as exc:
            return self._error(exc)

    async def _answer(self, call: Prepared, post: Post, *, urgent: bool = False) -> Any:
        """Return the server's outcome, and note whether it is usable.  Raises what the model raises."""
        try:
            outcome = checked(self.name, await self._joined.answer(call, post, urgent=urgent))
        except UpstreamError as error:
            self._last_calls.failed(call, error, self.clock())
            if isinstance(error, Unreachable):
                self._trust.doubted = True
            raise
        if isinstance(outcome, ModelFault):
            self._last_calls.failed(call, outcome, self.clock())
        else:
            self._last_calls.worked()
        return outcome

    def _error(self, exc: Exception) -> ScoregateError:
        """Return the service's error for an exception of a call."""
        match exc:
            case ScoregateError():
                return exc
            case ModelError():
                return CallRefused(str(exc))
            case UpstreamError():
                return UpstreamFailed(f"the server of {self.name} {explained(exc)}")
        log.error("call failed", extra={"model": self.name}, exc_info=exc)
        return call_fault(self.name)


def abandon(task: "asyncio.Task[Any]", result: Promise[Any]) -> None:
    """Cancel *task*: its *result* is done or cancelled."""
    task.cancel()
