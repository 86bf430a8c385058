"""A model that another process serves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any, Self

from models.base import ModelError, RemoteModel, UpstreamError, is_finite
from service.context import Context
from service.errors import (
    CallRefused,
    Draining,
    ModelFault,
    ScoregateError,
    UpstreamFailed,
)
from service.serving.backend import Backend, Outlook, prepare_all
from service.serving.batching import Ticket
from service.serving.upstream import Upstream
from service.telemetry import LANES, Instruments

log = logging.getLogger("scoregate.remote")

PRIORITY = {"interactive": "0", "bulk": "1"}  # vLLM's: lower goes first
WAITING_FOR_EACH = 64  # calls that may wait for each that is under way
WATCH_S = 5.0


class RemoteBackend(Backend):
    """
    Sends calls one by one; the server batches them.

    At most *max_in_flight* are under way, and their order is the server's affair, told by priority.
    Whether the server is there is looked at every few seconds, and decides readiness only: calls are
    tried in any case.
    """

    def __init__(
        self,
        name: str,
        model: RemoteModel,
        served: str,
        upstream: Upstream,
        *,
        max_in_flight: int,
        cpu: Mapping[str, Executor],
        instruments: Instruments,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name, self.info = name, model.info
        self._missing = "has not been asked yet"
        self._model, self._served, self._upstream = model, served, upstream
        self._most = max_in_flight
        self._slots = asyncio.Semaphore(max_in_flight)
        self._cpu, self._show, self._sleep = cpu, instruments, sleep
        self._waiting = dict.fromkeys(LANES, 0)
        for lane in LANES:
            instruments.queue_depth.labels(name, lane).set_function(partial(self._waiting.__getitem__, lane))
        self._closed = False
        self._took_s = 1.0  # a running mean
        self._watcher: asyncio.Task[None] | None = None

    @property
    def missing(self) -> str:
        """What was wrong when the server was last looked at."""
        return self._missing

    async def __aenter__(self) -> Self:
        """Look once, then keep watching."""
        await self.look()
        self._watcher = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Take nothing new and close the connections."""
        self._closed, self._missing = True, "shutting down"
        self._show.model_ready.labels(self.name).set(0)
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self._upstream.aclose()

    async def look(self) -> None:
        """Ask the server whether it serves the model."""
        self._missing = await self._upstream.missing(self._served)
        self._show.model_ready.labels(self.name).set(not self._missing)

    async def _watch(self) -> None:
        while True:
            await self._sleep(WATCH_S)
            await self.look()

    def outlook(self, lane: str) -> Outlook:
        """By what calls have lately taken."""
        waiting = self._waiting[lane]
        full = waiting >= WAITING_FOR_EACH * self._most
        wait = waiting * self._took_s / self._most
        return Outlook(f"{waiting} {lane} calls wait for {self.name}" if full else "", wait, self._took_s)

    async def prepare(self, calls: Sequence[Any], lane: str) -> list[Any]:
        """On one of the lane's CPU threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._cpu[lane], prepare_all, self._model, self.name, calls)

    def start(self, prepared: Any, ticket: Ticket, context: Context) -> "asyncio.Future[Any]":
        """Send the call in its turn; cancelled, its connection closes and the server drops its work."""
        if self._closed:
            raise Draining
        return asyncio.create_task(self._outcome(prepared, ticket, context))

    def lift(self, work: "asyncio.Future[Any]") -> None:
        """The server was told a priority, and can't be told another."""

    async def _outcome(self, prepared: Any, ticket: Ticket, context: Context) -> Any:
        result = "cancelled"
        try:
            answer = await self._ask(prepared, ticket, context)
            result = "ok" if is_finite(answer) else "error"
            return answer if result == "ok" else ModelFault(f"{self.name} gave a number that is not finite")
        except Exception as exc:
            result = "error"
            return self._error(exc)
        finally:
            self._show.calls.labels(self.name, ticket.lane, result).inc()

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

    async def _ask(self, prepared: Any, ticket: Ticket, context: Context) -> Any:
        headers = {"X-Request-Id": context.request_id, "X-Vllm-Priority": PRIORITY[ticket.lane]}
        if context.traceparent:
            headers["traceparent"] = context.traceparent
        async with self._slot(ticket):
            began = monotonic()
            answer = await self._model.answer(prepared, partial(self._upstream.post, headers=headers))
            ticket.ran = monotonic() - began
        self._took_s += 0.1 * (ticket.ran - self._took_s)
        return answer

    @asynccontextmanager
    async def _slot(self, ticket: Ticket) -> AsyncIterator[None]:
        """One of the places under way, once it is free."""
        began, lane = monotonic(), ticket.lane
        self._waiting[lane] += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting[lane] -= 1
        try:
            ticket.waited, ticket.begun = monotonic() - began, True
            self._show.queue_wait.labels(self.name, lane).observe(ticket.waited)
            yield
        finally:
            self._slots.release()
