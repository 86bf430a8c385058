"""A handle on a model that another process serves."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any, Self

from models.base import ModelError, RemoteModel, UpstreamError
from service.context import Context
from service.errors import CallRefused, Draining, LaneFull, ModelFault, ScoregateError, UpstreamFailed
from service.serving.handle import Handle
from service.serving.upstream import Upstream
from service.telemetry import LANES, Instruments

log = logging.getLogger("scoregate.remote")

PRIORITY = {"interactive": "0", "bulk": "1"}  # vLLM's: lower goes first
WAITING_FOR_EACH = 64  # calls that may wait for each that is under way
WATCH_S = 5.0


class RemoteHandle(Handle):
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
        cpu: Executor,
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

    def admit(self, lane: str) -> None:
        """Raises `LaneFull`."""
        waiting = self._waiting[lane]
        if waiting >= WAITING_FOR_EACH * self._most:
            wait = waiting * self._took_s / self._most
            raise LaneFull(f"{waiting} {lane} calls wait for {self.name}", retry_after_s=wait)

    async def ask(self, calls: Sequence[Any], context: Context) -> list[Any]:
        """One outcome per call, in order; cancelled, connections close and the server drops its work."""
        return list(await asyncio.gather(*(self._outcome(call, context) for call in calls)))

    async def _outcome(self, call: Any, context: Context) -> Any:
        result = "cancelled"
        try:
            self.admit(context.lane)
            answer = await self._ask(call, context)
            result = "ok"
            return answer
        except Exception as exc:
            result = "error"
            return self._error(exc)
        finally:
            self._show.calls.labels(self.name, context.lane, result).inc()

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

    async def _ask(self, call: Any, context: Context) -> Any:
        if self._closed:
            raise Draining
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._cpu, self._model.prepare, call)
        headers = {"X-Request-Id": context.request_id, "X-Vllm-Priority": PRIORITY[context.lane]}
        if context.traceparent:
            headers["traceparent"] = context.traceparent
        async with self._slot(context):
            began = monotonic()
            answer = await self._model.answer(prepared, partial(self._upstream.post, headers=headers))
            took = monotonic() - began
        self._took_s += 0.1 * (took - self._took_s)
        context.spent("model", took)
        return answer

    @asynccontextmanager
    async def _slot(self, context: Context) -> AsyncIterator[None]:
        """One of the places under way, once it is free."""
        began = monotonic()
        self._count(context.lane, 1)
        try:
            await self._slots.acquire()
        finally:
            self._count(context.lane, -1)
        try:
            waited = monotonic() - began
            context.spent("queue", waited)
            self._show.queue_wait.labels(self.name, context.lane).observe(waited)
            yield
        finally:
            self._slots.release()

    def _count(self, lane: str, more: int) -> None:
        self._waiting[lane] += more
        self._show.queue_depth.labels(self.name, lane).set(self._waiting[lane])
