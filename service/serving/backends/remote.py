"""A model that another process serves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Self

from models.core.calls import Call
from models.core.contract import ModelError, Prepared, RemoteModel, UpstreamError
from models.core.outcomes import CallResult
from models.core.settings import RemoteSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.promise import Promise
from service.core.concurrency.tasks import Tasks
from service.core.concurrency.watcher import Watcher
from service.core.errors import CallRefused, Draining, ModelFault, NotReady, ScoregateError, UpstreamFailed
from service.core.lanes import BULK, INTERACTIVE, LANES
from service.observability.instruments import Instruments
from service.serving.backends.last_calls import LastCalls
from service.serving.backends.prepare import prepare_all
from service.serving.backends.queued import StartedQueuedCall
from service.serving.backends.trust import Trust
from service.serving.backends.upstream import Unreachable, Upstream
from service.serving.batcher.batch import QueuedCall, Shares
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import HostedModel, RunningBatch, Scheduler
from service.serving.context import Context
from service.serving.contract import AdmissionForecast, Backend, WorkEstimate
from service.serving.demand import Demand
from service.serving.reservation import Reservation

log = logging.getLogger("scoregate.remote")

PRIORITY = {"interactive": "0", "bulk": "1"}  # vLLM's: lower goes first
WATCH_S = 5.0
CHECK_S = 20.0  # for the known questions at a look, also at the start


@dataclass(eq=False, slots=True)
class RemoteCall(QueuedCall):
    """A call to the server, and the *headers* that name the request it belongs to."""

    headers: Mapping[str, str] = field(default_factory=dict)


class RemoteBackend(Backend):
    """
    Sends calls one by one; the server batches them.

    At most `max_in_flight` are under way.  The others wait here, in the two lanes, by the rules of a
    device: a call that ends is a batch that ends, and the next one is chosen then.  The server is told a
    call's lane as its priority.  Whether the server is there is looked at every few seconds, and decides
    readiness only: calls are tried in any case.  A model that came up answers nothing before it has
    answered known calls as it should.

    Args:
        queue: what waits, in batches of one call.
        clock: seconds, the event loop's by default.
    """

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
        shares: Shares | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name, self.info = name, model.info
        self._missing = "has not been asked yet"
        self._served, self._upstream = settings.model, upstream
        self._cpu, self._instruments, self._clock = cpu, instruments, clock
        self._resident = HostedModel(name, model, queue)
        self._scheduler = Scheduler([self._resident], shares or Shares(), clock(), settings.max_in_flight)
        self._sending = Tasks()
        for lane in LANES:
            instruments.queue_depth.labels(name, lane).set_function(partial(queue.depth, lane))
        self._closed, self._came_up = False, True
        self._trust = Trust(name, model.opposites(), self._known, clock)
        self._last_calls = LastCalls()
        self._required: dict[str, Sequence[Call]] = {}
        self._watcher = Watcher(self.look, WATCH_S, sleep)

    @property
    def missing(self) -> str:
        """What was wrong when the server was last looked at, or how the model failed its check."""
        return self._missing or self._trust.fault

    @property
    def failing(self) -> str:
        """The same, or how its last calls failed."""
        return self.missing or self._last_calls.reason

    async def __aenter__(self) -> Self:
        """Look once, then keep watching."""
        await self._watcher.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new, answer who waits with `Draining`, and close the connections."""
        self._closed, self._missing = True, "shutting down"
        self._instruments.model_ready.labels(self.name).set(0)
        await self._watcher.aclose()
        await self._trust.aclose()
        for call in self._resident.queue.take_all(self._clock()):
            call.answer(Draining())
        await self._sending.cancel()
        await self._upstream.aclose()

    async def look(self) -> None:
        """Ask the server whether it serves the model, and the model what it should know."""
        self._missing = await self._upstream.missing(self._served)
        if self._missing:
            self._trust.doubted = self._came_up = True  # it may be another process next time
        else:
            await self._look_at_model()
        self._instruments.model_ready.labels(self.name).set(not self.missing)

    async def _look_at_model(self) -> None:
        """Check it where that is due, and try the call again that failed last."""
        try:
            async with asyncio.timeout(CHECK_S):
                await self._trust.renew()
        except NotReady:
            return
        except (UpstreamError, TimeoutError) as exc:
            if self._trust.doubted:  # else it is only busy
                self._missing = f"does not answer a known question: {exc or 'not in time'}"
            return
        if self._came_up:
            self._came_up = False
            for purpose, calls in self._required.items():
                await super().require(purpose, calls)
        if call := self._last_calls.take_due(self._clock()):
            with suppress(ModelError, UpstreamError):
                await self._answer(call, {"X-Vllm-Priority": PRIORITY[BULK]})

    async def require(self, purpose: str, calls: Sequence[Call]) -> None:
        """As any backend, now and each time that the server comes up."""
        self._required[purpose] = calls
        if not self.missing:
            await super().require(purpose, calls)

    async def refusal(self, call: Call) -> str:
        """As the server says: it knows the tokens."""
        try:
            await self._known(call)
        except ModelError as exc:
            return str(exc)
        except UpstreamError:
            pass
        return ""

    async def _known(self, call: Call) -> Any:
        """The outcome of a call of ours.  Raises `ModelError`, `UpstreamError`."""
        prepared = await self._cpu[INTERACTIVE].run(self._resident.model.prepare, call)
        post = partial(self._upstream.post, headers={"X-Vllm-Priority": PRIORITY[INTERACTIVE]})
        return await self._resident.model.answer(prepared, post)

    def outlook(self, lane: str, demand: Demand | None = None) -> AdmissionForecast:
        """By what calls have lately taken; the first ones meet no prediction."""
        return self._scheduler.outlook(self._resident, lane, demand, self._clock())

    def extent(self, demand: Demand) -> WorkEstimate:
        """By the same."""
        return self._scheduler.extent(self._resident, demand)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """In the tokens that calls lately had."""
        return self._resident.queue.reserve(lane, demand, parts)

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """On one of the lane's CPU threads."""
        model = self._resident.model
        with self._resident.queue.pending.expecting(lane, len(calls), self._clock):
            return await self._cpu[lane].run(prepare_all, model.prepare, self.name, calls)

    def start(self, prepared: Prepared, lane: str, deadline: float, context: Context) -> StartedQueuedCall:
        """Queue the call, and send it where a place is free."""
        if self._closed:
            raise Draining
        headers = {"X-Request-Id": context.request_id}
        if context.traceparent:
            headers["traceparent"] = context.traceparent
        call = RemoteCall(prepared, lane, self._clock(), deadline, headers=headers)
        self._scheduler.put(self._resident, call)
        self._fill_places()
        return StartedQueuedCall(call, partial(self._resident.queue.promote, call))

    def _fill_places(self) -> None:
        """Send what waits, in its turn, as long as places are free."""
        while self._scheduler.has_place and not self._closed:
            turn = self._scheduler.begin(self._resident, self._clock())
            if turn is None:
                return
            [call] = turn.batch
            call.begin(turn.began)
            self._instruments.queue_wait.labels(self.name, call.lane).observe(call.waited_s)
            task = self._sending.start(self._outcome(call))
            task.add_done_callback(partial(self._end, turn))
            call.result.add_done_callback(partial(abandon, task))

    def _end(self, turn: RunningBatch[RemoteModel], task: "asyncio.Task[Any]") -> None:
        """Answer the turn's one call, learn from it, and let the next one begin."""
        [call], ended = turn.batch, self._clock()
        ran_s = ended - turn.began
        outcome = Draining() if task.cancelled() else task.result()
        if task.cancelled():
            result = "cancelled"
        else:
            result = "error" if isinstance(outcome, ScoregateError) else "ok"
            self._resident.queue.finished(call.prepared.cost, ran_s)
        self._instruments.calls.labels(self.name, call.lane, result).inc()
        self._scheduler.end(turn, ended)
        call.answer(outcome, ran_s)
        self._fill_places()

    async def _outcome(self, call: QueuedCall) -> Any:
        """What the server says, or the error that takes its place."""
        assert isinstance(call, RemoteCall)
        headers = {**call.headers, "X-Vllm-Priority": PRIORITY[call.lane]}
        try:
            await self._trust.check()
            outcome = await self._answer(call.prepared, headers)
        except Exception as exc:
            return self._error(exc)
        if isinstance(outcome, CallResult) and not outcome.is_finite():
            return ModelFault(f"the model {self.name} returned a number that is not finite")
        return outcome

    async def _answer(self, call: Prepared, headers: Mapping[str, str]) -> Any:
        """What the server says to *call*; whether it does is noted.  Raises what the model raises."""
        try:
            post = partial(self._upstream.post, headers=headers)
            outcome = await self._resident.model.answer(call, post)
        except UpstreamError as error:
            self._last_calls.failed(call, error, self._clock())
            if isinstance(error, Unreachable):
                self._trust.doubted = True
            raise
        self._last_calls.worked()
        return outcome

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


def abandon(task: "asyncio.Task[Any]", result: Promise[Any]) -> None:
    """Nobody waits for the *result* that *task* works on, or it is there already."""
    task.cancel()
