"""The service: its parts, and the life they share."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Self, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from service import body
from service.context import Context
from service.engine import Engine
from service.errors import Fault, Invalid
from service.inputs import Inputs, Parts
from service.questions.redis_store import RedisStore
from service.questions.sqlite_store import SQLiteStore
from service.questions.store import Store
from service.questions.writer import Questions
from service.serving.redis_client import RedisClient
from service.serving.runtime import Loaded, LocalRuntime
from service.settings import LONGEST_TIMEOUT_MS, Settings
from service.telemetry import LANES, Instruments

B = TypeVar("B", bound=BaseModel)

TIMEOUT_HEADER = "x-request-timeout-ms"
TRACEPARENT = re.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Service:
    """
    Everything a route needs.

    Opened, the parts start in the order of what needs what: connections to Redis, devices (loaded models
    are warmed before anything is served), then the store, then the question writer.  They close in
    reverse: the writer must not outlive the store, nor anything the devices that answer it.
    """

    def __init__(
        self, settings: Settings, models: Mapping[str, Loaded], on_broken: Callable[[str], None]
    ) -> None:
        self.settings = settings
        self.instruments = Instruments(models)
        self.redis = {
            cache: RedisClient(cache, url, self.instruments) for cache, url in settings.cache.redis.items()
        }
        scores = self.redis.get("scores")
        self.runtime = LocalRuntime(models, settings, self.instruments, on_broken, scores)
        self.draining = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start everything."""
        settings = self.settings
        for client in self.redis.values():
            await self._stack.enter_async_context(client)
        await self._stack.enter_async_context(self.runtime)
        store = await self._open_store()
        llm = self.runtime.handle("dsg", "questions")
        timeout_s = settings.models[llm.name].timeout_s if llm else 0.0
        self.questions = Questions(store, llm, timeout_s, self.instruments)
        self._stack.push_async_callback(self.questions.aclose)
        inputs = Inputs(settings.images, self.runtime.cpu)
        self.engine = Engine(self.runtime, self.questions, inputs)
        if settings.server.metrics_port is not None:
            self.instruments.serve(settings.server.host, settings.server.metrics_port)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close everything, in reverse."""
        self.draining = True
        await self._stack.aclose()

    async def _open_store(self) -> Store:
        cache = self.settings.cache
        if client := self.redis.get("questions"):
            return RedisStore(client, cache.questions_in_memory)
        store = SQLiteStore(cache.questions_path, cache.questions_in_memory)
        return await self._stack.enter_async_context(store)

    async def read(self, request: Request, wire: type[B]) -> tuple[B, Parts]:
        """The request's checked body and its file parts."""
        limits = self.settings.server
        return await body.read(request, wire, limits.max_items, limits.body_limit_mb * 2**20)

    def context(self, request: Request, timeout_ms: int | None, lane: str) -> Context:
        """What this request's calls carry: its timeout counts from its first byte."""
        state = request.state
        if timeout_ms is None:
            timeout_ms = self._header_timeout(request)
        loop = asyncio.get_running_loop()
        trace = request.headers.get("traceparent", "")
        trace = trace if TRACEPARENT.fullmatch(trace) else ""
        context = Context(state.request_id, 0.0, lane, self.instruments, trace, began=state.began)
        context.deadline = loop.time() + timeout_ms / 1000 - context.elapsed()
        return context

    def _header_timeout(self, request: Request) -> int:
        given = request.headers.get(TIMEOUT_HEADER)
        if given is None:
            return self.settings.server.default_timeout_ms
        if not re.fullmatch("[0-9]{1,6}", given) or not 1 <= int(given) <= LONGEST_TIMEOUT_MS:
            detail = f"{TIMEOUT_HEADER} must be a whole number from 1 to {LONGEST_TIMEOUT_MS}"
            raise Invalid(detail, faults=[Fault("", "invalid_header", detail)])
        return int(given)

    def readiness(self) -> dict[str, Any]:
        """Whether requests can be served, why not, and how each model and each cache in a Redis stands."""
        models = {name: handle.missing or "ready" for name, handle in self.runtime.handles.items()}
        reasons = [
            f"models.{name}: {state}"
            for name, state in models.items()
            if state != "ready" and self.settings.is_required(name)
        ]
        if self.draining:
            reasons.append("shutting down")
        caches = {cache: client.missing or "ready" for cache, client in self.redis.items()}
        return {"ready": not reasons, "reasons": reasons, "models": models, "caches": caches}

    def describe(self) -> dict[str, Any]:
        """Models, metrics and limits."""
        server, images = self.settings.server, self.settings.images
        return {
            "models": [
                {
                    "name": name,
                    **{
                        field: getattr(handle.info, field)
                        for field in ("role", "family", "id", "revision", "dtype", "device")
                    },
                    "ready": not handle.missing,
                }
                for name, handle in self.runtime.handles.items()
            ],
            "metrics": {
                name: {
                    "range": metric.range,
                    "direction": metric.direction,
                    "paper": metric.paper,
                    "roles": metric.roles,
                }
                for name, metric in self.engine.metrics.items()
            },
            "limits": {
                "max_items": server.max_items,
                "body_limit_mb": server.body_limit_mb,
                "default_timeout_ms": server.default_timeout_ms,
                "max_pixels": images.max_pixels,
                "max_side": images.max_side,
                "max_image_bytes": images.max_bytes,
                "lanes": LANES,
            },
        }
