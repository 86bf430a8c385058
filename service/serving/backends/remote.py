"""A model that another process serves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any, Self

from models.calls import Call
from models.contract import ModelError, Prepared, RemoteModel, UpstreamError
from models.outcomes import Outcome
from models.settings import RemoteSettings
from service.concurrency.watcher import Watcher
from service.context import Context
from service.errors import CallRefused, Draining, ModelFault, ScoregateError, UpstreamFailed
from service.lanes import INTERACTIVE, LANES
from service.serving.backends.contract import Backend, Outlook, Result, StartedCall
from service.serving.backends.prepare import prepare_all
from service.serving.backends.upstream import Upstream
from service.telemetry import Instruments

log = logging.getLogger("scoregate.remote")

PRIORITY = {"interactive": "0", "bulk": "1"}  # vLLM's: lower goes first
MAX_WAITING = 64  # calls that may wait for each that is under way
WATCH_S = 5.0


class RemoteCall(StartedCall):
    """
    One call to the server, from its place in the line to its answer.

    Attributes:
        lane: its caller's, as the instruments count it.
        task: sends it.
        waited_s, ran_s: seconds until its request was sent, and until it was answered; once known.
    """

    task: asyncio.Task[Result]

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.waited_s = self.ran_s = 0.0
        self._running = False

    @property
    def result(self) -> "asyncio.Future[Result]":
        """The task's."""
        return self.task

    @property
    def running(self) -> bool:
        """Whether its request has been sent."""
        return self._running

    def begin(self, waited_s: float) -> None:
        """Its request is sent now."""
        self._running, self.waited_s = True, waited_s

    def promote(self) -> None:
        """For the instruments only: the server was told a priority, and cannot be told another."""
        self.lane = INTERACTIVE

    def extend(self, deadline: float) -> None:
        """The server knows no deadline: callers who run out of time leave, and it is cancelled."""

    def cancel(self) -> None:
        """Its connection closes, and the server drops its work."""
        self.task.cancel()


class RemoteBackend(Backend):
    """
    Sends calls one by one; the server batches them.

    At most `max_in_flight` are under way, and their order is the server's affair, told by priority.
    Whether the server is there is looked at every few seconds, and decides readiness only: calls are
    tried in any case.
    """

    def __init__(
        self,
        name: str,
        model: RemoteModel,
        settings: RemoteSettings,
        upstream: Upstream,
        *,
        cpu: Mapping[str, Executor],
        instruments: Instruments,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name, self.info = name, model.info
        self._missing = "has not been asked yet"
        self._model, self._served, self._upstream = model, settings.model, upstream
        self._max_in_flight = settings.max_in_flight
        self._slots = asyncio.Semaphore(settings.max_in_flight)
        self._cpu, self._instruments = cpu, instruments
        self._waiting = dict.fromkeys(LANES, 0)
        for lane in LANES:
            instruments.queue_depth.labels(name, lane).set_function(partial(self._waiting.__getitem__, lane))
        self._closed = False
        self._typical_s = 1.0  # of a request, a running mean
        self._watcher = Watcher(self.look, WATCH_S, sleep)

    @property
    def missing(self) -> str:
        """What was wrong when the server was last looked at."""
        return self._missing

    async def __aenter__(self) -> Self:
        """Look once, then keep watching."""
        await self._watcher.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new and close the connections."""
        self._closed, self._missing = True, "shutting down"
        self._instruments.model_ready.labels(self.name).set(0)
        await self._watcher.aclose()
        await self._upstream.aclose()

    async def look(self) -> None:
        """Ask the server whether it serves the model."""
        self._missing = await self._upstream.missing(self._served)
        self._instruments.model_ready.labels(self.name).set(not self._missing)

    def outlook(self, lane: str) -> Outlook:
        """By what requests have lately taken."""
        waiting = self._waiting[lane]
        full = waiting >= MAX_WAITING * self._max_in_flight
        wait_s = waiting * self._typical_s / self._max_in_flight
        return Outlook(
            f"{waiting} {lane} calls wait for {self.name}" if full else "", wait_s, self._typical_s
        )

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """On one of the lane's CPU threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._cpu[lane], prepare_all, self._model, self.name, calls)

    def start(self, prepared: Prepared, lane: str, deadline: float, context: Context) -> RemoteCall:
        """Send the call in its turn."""
        if self._closed:
            raise Draining
        call = RemoteCall(lane)
        call.task = asyncio.create_task(self._result(call, prepared, context))
        return call

    async def _result(self, call: RemoteCall, prepared: Prepared, context: Context) -> Result:
        counted = "cancelled"
        try:
            outcome = await self._outcome(call, prepared, context)
            counted = "error" if isinstance(outcome, ScoregateError) else "ok"
        except Exception as exc:
            counted = "error"
            outcome = self._error(exc)
        finally:
            self._instruments.calls.labels(self.name, call.lane, counted).inc()
        return Result(outcome, call.waited_s, call.ran_s)

    def _error(self, exc: Exception) -> ScoregateError:
        """What a call's exception means to the service."""
        match exc:
            case ScoregateError():
                return exc
            case ModelError():
                return CallRefused(str(exc))
            case UpstreamError():
                return UpstreamFailed(f"the server of {self.name} {exc}")
        log.error("call failed", extra={"model": self.name}, exc_info=exc)
        return ModelFault(f"the model {self.name} failed on this call")

    async def _outcome(self, call: RemoteCall, prepared: Prepared, context: Context) -> Any:
        """What the server says, or a fault.  Raises what `RemoteModel.answer` raises."""
        headers = {"X-Request-Id": context.request_id, "X-Vllm-Priority": PRIORITY[call.lane]}
        if context.traceparent:
            headers["traceparent"] = context.traceparent
        async with self._slot(call):
            began = monotonic()
            outcome = await self._model.answer(prepared, partial(self._upstream.post, headers=headers))
            call.ran_s = monotonic() - began
        self._typical_s += 0.1 * (call.ran_s - self._typical_s)
        if isinstance(outcome, Outcome) and not outcome.is_finite():
            return ModelFault(f"{self.name} gave a number that is not finite")
        return outcome

    @asynccontextmanager
    async def _slot(self, call: RemoteCall) -> AsyncIterator[None]:
        """One of the places under way, once it is free."""
        began, lane = monotonic(), call.lane
        self._waiting[lane] += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting[lane] -= 1
        try:
            call.begin(monotonic() - began)
            self._instruments.queue_wait.labels(self.name, lane).observe(call.waited_s)
            yield
        finally:
            self._slots.release()
