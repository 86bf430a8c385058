"""The service: its parts and their shared lifetime."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import monotonic
from typing import Self

from opentelemetry import trace

from models.core.family import Loaded
from service.core.concurrency.budget import ByteBudget
from service.core.concurrency.cpu_threads import FairThreads, cpu_threads
from service.core.redis import RedisClient
from service.core.settings.tree import Settings
from service.decisions.audits import Audits
from service.decisions.log import DecisionLog
from service.images.fetcher import PublicNetwork
from service.images.loader import ImageLoader
from service.metrics.common.composites import Composite, composites
from service.metrics.common.contract import Metric
from service.metrics.common.registry import assign, configured, metrics, styled
from service.observability.instruments import Instruments
from service.observability.tracing import open_tracer
from service.questions.stores.opening import opened_store
from service.questions.writer import QuestionWriter
from service.scoring.catalog import configured_metrics
from service.scoring.engine import Engine
from service.scoring.policies import served_policies
from service.scoring.questions import Asker
from service.serving.backends.contract import LOADED_STATE
from service.serving.backends.local import WeightLoader
from service.serving.batcher.device import compute_on_one_core
from service.serving.handle import Handle
from service.serving.lifecycle import Lifecycle
from service.serving.outbox import Outbox
from service.serving.runtime import LocalRuntime, Runtime

log = logging.getLogger("scoregate.service")

READY = "ready"
SET_TIMEOUT_S = 60.0  # question LLMs whose family has no such setting get it


@dataclass(frozen=True, slots=True)
class Readiness:
    """The state of each model and each cache in a Redis, and the *reasons* why requests can't be served."""

    models: Mapping[str, str]
    caches: Mapping[str, str]
    reasons: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """
    The parts of a service that neither its settings nor its models determine.

    Attributes:
        metrics: returns every metric that is declared, by name.
        instruments: makes the instruments of models, metrics and policies.
        engine: makes the engine.
        audits: makes the audits of decisions.
        weights: loads and moves the weights of models of this process.
        network: opens connections to the hosts of images; only to public addresses by default.
        clock: of keys, quotas and served models, in seconds.
    """

    metrics: Callable[[], Mapping[str, Metric]] = metrics
    instruments: Callable[..., Instruments] = Instruments
    engine: Callable[..., Engine] = Engine
    audits: Callable[..., Audits] = Audits
    weights: WeightLoader | None = None
    network: PublicNetwork | None = None
    clock: Callable[[], float] = monotonic


class Service:
    """
    The parts that apps need.

    The parts start in the order of their dependencies: connections to Redis, devices (loaded models are
    warmed before anything is served), then the store, then the question writer.  They close in reverse:
    the writer must not outlive the store, and nothing may outlive the devices that it uses.

    Args:
        models: the loaded models by configured name.
        on_broken: called with one line if a device fails permanently and the process should end.
        parts: in place of those of a process that serves.

    Attributes:
        metrics: every metric, including the profile's composites.
        policies: of decisions, by name.
        memory: the budget of the bytes that all requests hold.
        outbox: scores that trainers fetch later.
        decisions: the log of decisions, if the settings name one.
        audits: of a share of the decisions, if the settings have one.
        clock: of keys and quotas, in seconds.
        parser: a thread that parses large bodies.

    Raises:
        SettingsError: the table of a metric, a composite or a policy names something unknown.
    """

    questions: QuestionWriter
    engine: Engine
    asker: Asker
    lifecycle: Lifecycle

    def __init__(
        self,
        settings: Settings,
        models: Mapping[str, Loaded],
        on_broken: Callable[[str], None] = lambda reason: None,
        parts: ServiceParts | None = None,
    ) -> None:
        parts = parts or ServiceParts()
        declared = configured(parts.metrics(), settings)
        assigned = assign(declared, settings)
        self.settings, self.clock, self._make_engine = settings, parts.clock, parts.engine
        self._make_audits = parts.audits
        asking = styled(declared, settings)
        self.metrics = {**asking, **composites(asking, settings, assigned)}
        self.policies = served_policies(self.metrics, assigned, settings.policies)
        served = configured_metrics(self.metrics, assigned)
        ranges = {name: each.range_of() for name, each in served.items()}
        self.instruments = parts.instruments(settings.models, ranges, self.policies)
        self.redis = {
            cache: RedisClient(
                cache,
                url,
                ca_file=settings.cache.redis_ca_file,
                failed=self.instruments.cache_errors.labels(cache).inc,
            )
            for cache, url in settings.cache.redis.items()
        }
        self.cpu = cpu_threads(settings.images.decode_workers, compute_on_one_core)
        self.parser = FairThreads(1, "parser")
        self.memory = ByteBudget(settings.server.request_bytes)
        self.instruments.request_budget.set(self.memory.total)
        self.instruments.requests_held.set_function(lambda: self.memory.held)
        self.images = ImageLoader(settings.images, self.cpu, self.memory, parts.network)
        self.outbox = Outbox(self.memory)
        self.instruments.pixel_budget.set(settings.images.decoded_budget_mb * 2**20)
        self.instruments.pixels_held.set_function(lambda: self.images.pixels.held)
        scores = self.redis.get("scores")
        self.runtime: Runtime
        if settings.runtime.kind == "ray":
            from service.serving.ray.runtime import RayRuntime  # only services with Ray import it

            self.runtime = RayRuntime(
                models, settings, assigned, self.cpu, self.instruments, scores, clock=parts.clock
            )
        else:
            self.runtime = LocalRuntime(
                models,
                settings,
                assigned,
                self.cpu,
                self.instruments,
                on_broken,
                scores,
                parts.weights,
                clock=parts.clock,
            )
        self.tracer: trace.Tracer = trace.NoOpTracer()
        self.draining = False
        self.decisions: DecisionLog | None = None
        self.audits: Audits | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Start everything."""
        for policy in self.policies.values():
            for said in policy.warnings:
                log.warning("%s", said)
        for metric in self.metrics.values():
            if isinstance(metric, Composite) and metric.lacks:
                log.warning("the composite %s has no scores: %s", metric.name, "; ".join(metric.lacks))
        async with AsyncExitStack() as starting:  # closes the parts that have started if one fails
            self.tracer = await starting.enter_async_context(
                open_tracer(self.settings.telemetry.otlp_endpoint)
            )
            starting.callback(self._stop_threads)
            starting.push_async_callback(self.images.aclose)
            for client in self.redis.values():
                await starting.enter_async_context(client)
            await starting.enter_async_context(self.runtime)
            await self._try_essential_calls()
            opening = opened_store(self.settings.cache, self.redis.get("questions"))
            store = await starting.enter_async_context(opening)
            if self.settings.decisions.log:
                writing = DecisionLog(self.settings.decisions, self.instruments.decisions_unlogged.inc)
                self.decisions = await starting.enter_async_context(writing)
            self.questions = QuestionWriter(store, self._set_timeouts_s(), self.instruments)
            starting.push_async_callback(self.questions.aclose)
            self.engine = self._make_engine(
                self.metrics, self.runtime, self.questions, self.images, self.cpu, self.settings.demo_models
            )
            if self.decisions is not None and (share := self.settings.decisions.audit):
                count = self.instruments.count_audit
                self.audits = self._make_audits(self.engine, self.decisions, share, count)
                starting.push_async_callback(self.audits.aclose)
            self.asker = Asker(self.runtime, self.images, self.questions)
            starting.push_async_callback(self.outbox.aclose)
            self.lifecycle = Lifecycle(self.runtime, self.instruments, self._try_essential_calls)
            starting.push_async_callback(self.lifecycle.aclose)  # closed first, since no change may follow
            self._stack = starting.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close everything, in reverse."""
        self.draining = True
        await self._stack.aclose()

    def _set_timeouts_s(self) -> dict[str, float]:
        """Return the timeout of one question set in seconds, by the question LLM's configured name."""
        return {
            name: getattr(table, "timeout_s", SET_TIMEOUT_S) for name, table in self.settings.models.items()
        }

    def _stop_threads(self) -> None:
        for pool in (*self.cpu.values(), self.parser):
            pool.shutdown()

    async def _try_essential_calls(self, model: Handle | None = None) -> None:
        """Check that each loaded model, or one of them, answers the essential calls of its metrics."""
        for metric in self.metrics.values():
            for role, calls in (metric.essential() if metric.essential else {}).items():
                handle = self.runtime.handle(metric.name, role)
                if handle and model in (None, handle) and handle.backend.presence.state == LOADED_STATE:
                    await handle.backend.require(metric.name, calls)

    def missing(self, metric: Metric) -> list[str]:
        """Return what *metric* needs and is missing now, unless it is degraded."""
        asked = [self.metrics[name] for name in metric.asks(metric.options())]
        needed = [self.runtime.handle(each.name, role) for each in asked for role in each.roles]
        models = {
            handle.name: handle.backend.missing for handle in needed if handle and not handle.backend.failing
        }
        lacks = metric.lacks if isinstance(metric, Composite) else ()
        return [*lacks, *(f"models.{name}: {state}" for name, state in models.items() if state)]

    def readiness(self) -> Readiness:
        """Whether requests can be served, and if not, why."""
        models = {name: handle.backend.missing or READY for name, handle in self.runtime.handles.items()}
        reasons = [
            f"models.{name}: {state}"
            for name, state in models.items()
            if state != READY and self.settings.is_required(name)
        ]
        if self.draining:
            reasons.append("shutting down")
        caches = {cache: client.missing or READY for cache, client in self.redis.items()}
        return Readiness(models, caches, reasons)
