"""The local runtime: every configured model in this process, each on its device."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Self

from models.base import CheckpointError, Model
from models.clip import Clip
from models.clip_flant5 import ClipFlanT5
from models.locate import locate
from models.openai_llm import OpenAiLLM
from models.openai_vlm import OpenAiVlm
from models.question_llm import QuestionLLM
from service.serving.backend import Backend, LocalBackend
from service.serving.batching import Shares
from service.serving.cache import Cache, OutcomeCache
from service.serving.device import CORES, Device, Resident, compute_on_one_core
from service.serving.handle import Handle
from service.serving.queue import Queue
from service.serving.redis_cache import RedisCache, recipe_of
from service.serving.redis_client import RedisClient
from service.serving.remote import RemoteBackend
from service.serving.upstream import Upstream
from service.settings import SERVES, ModelSettings, Settings, read_secret
from service.telemetry import BULK, INTERACTIVE, Instruments

# Of a lane's CPU threads (Linux has it for each thread): decoding for trainers gives way to everything else.
NICE = {INTERACTIVE: 0, BULK: 5}

Loaded = Model | OpenAiLLM | OpenAiVlm


def load_model(name: str, settings: ModelSettings) -> Loaded:
    """Load one model, or get ready to ask its server.  Raises `CheckpointError`, naming the model."""
    place = {"device": settings.device, "dtype": settings.dtype}
    named = {"id": settings.id, "revision": settings.revision}
    if settings.api_key_env:
        read_secret(settings.api_key_env)  # that it is there
    try:
        if settings.family == "openai":
            return OpenAiLLM(settings.model, extra_body=settings.extra_body, **named)
        if settings.family == "openai_vlm":
            extra, question = settings.extra_body, settings.question
            return OpenAiVlm(settings.model, question=question, extra_body=extra, **named)
        if settings.family == "open_clip":
            return Clip(
                settings.model or settings.checkpoint,
                pretrained=settings.pretrained,
                resize_mode=settings.resize_mode,
                **place,
                **named,
            )
        found = locate(settings.checkpoint, settings.revision)
        named = {"id": settings.id or found.id, "revision": found.revision or settings.revision}
        if settings.family == "clip_flant5":
            compile, features_mb = settings.compile, settings.features_mb
            return ClipFlanT5(found.directory, compile=compile, features_mb=features_mb, **place, **named)
        return QuestionLLM(found.directory, **place, **named)
    except (CheckpointError, OSError, RuntimeError, ValueError, KeyError, TypeError) as exc:
        # torch says RuntimeError to an unknown device, and a config.json may lack anything.
        known = isinstance(exc, CheckpointError | RuntimeError)
        reason = str(exc).partition("\n")[0] if known else repr(exc)
        raise CheckpointError(f"models.{name}: {reason}") from exc


def load_models(settings: Settings) -> dict[str, Loaded]:
    """Load all models, by configured name."""
    compute_on_one_core()
    return {name: load_model(name, model) for name, model in settings.models.items()}


class LocalRuntime:
    """
    Devices, threads, connections and handles for *models*.

    The question LLM gets a thread of its own: one generation takes as long as many batches.  *redis* is
    where outcomes are shared with other processes, if they are.
    """

    def __init__(
        self,
        models: Mapping[str, Loaded],
        settings: Settings,
        instruments: Instruments,
        on_broken: Callable[[str], None],
        redis: RedisClient | None = None,
    ) -> None:
        # The threads that decode and prepare, for each lane its own: bulk never stands before interactive.
        workers = settings.images.decode_workers
        self.cpu = {
            lane: ThreadPoolExecutor(workers, f"cpu-{lane}", initializer=os.nice, initargs=(nice,))
            for lane, nice in NICE.items()
        }
        self._instruments = instruments
        self._stack = AsyncExitStack()
        self._settings = settings
        self._models = dict(models)
        self._on_broken = on_broken
        weights = settings.queue.weights
        self._shares = Shares(weights.interactive, weights.bulk, settings.queue.ageing_s)
        cache = settings.cache
        self._memory = None if cache.scores == "off" else OutcomeCache(cache.scores_mb * 2**20)
        self._redis, self._shared = redis, list[RedisCache]()
        self.devices: list[Device] = []
        self.handles: dict[str, Handle] = {}

    async def __aenter__(self) -> Self:
        """Build, warm, serve."""
        groups: dict[tuple[str, bool], list[Resident]] = {}
        for name, model in self._models.items():
            settings = self._settings.models[name]
            if isinstance(model, OpenAiLLM | OpenAiVlm):
                self._hold(await self._stack.enter_async_context(self._remote(name, model, settings)))
                continue
            place = (settings.device, model.info.role == "questions")
            groups.setdefault(place, []).append(Resident(name, model, self._queue(name)))
        for (_, writes), residents in groups.items():
            device = Device(
                residents,
                self._instruments,
                cores=1 if writes else CORES,
                on_broken=self._on_broken,
                shares=self._shares,
            )
            await self._stack.enter_async_context(device)
            self.devices.append(device)
            for resident in residents:
                self._hold(LocalBackend(resident, device, self.cpu))
        self._serving = {
            (metric, role): self.handles.get(self._settings.model_for(metric, role) or "")
            for metric, roles in SERVES.items()
            for role in roles
        }
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Drain and close, in reverse."""
        await self._stack.aclose()
        for cache in self._shared:  # devices answer until they are closed
            await cache.aclose()
        for pool in self.cpu.values():
            pool.shutdown()

    def _hold(self, backend: Backend) -> None:
        handle = self.handles[backend.name] = Handle(backend, self._cache(backend.name))
        self._stack.push_async_callback(handle.aclose)

    def _cache(self, name: str) -> Cache | None:
        """Where one model's outcomes are kept, if anywhere."""
        if self._memory is None or self._redis is None:
            return self._memory
        recipe, ttl_s = recipe_of(self._settings.models[name]), self._settings.cache.scores_ttl_s
        self._shared.append(RedisCache(self._memory, self._redis, recipe, ttl_s))
        return self._shared[-1]

    def _remote(self, name: str, model: OpenAiLLM | OpenAiVlm, settings: ModelSettings) -> RemoteBackend:
        key = read_secret(settings.api_key_env) if settings.api_key_env else ""
        most, timeout_s = settings.max_in_flight, settings.timeout_s
        upstream = Upstream(settings.base_url, api_key=key, timeout_s=timeout_s, max_in_flight=most)
        return RemoteBackend(
            name,
            model,
            settings.model,
            upstream,
            max_in_flight=most,
            cpu=self.cpu,
            instruments=self._instruments,
        )

    def _queue(self, name: str) -> Queue:
        batch, queue = self._settings.models[name].batch, self._settings.queue
        # Sets are written one by one: a batch would only make the first wait for the last.
        writes = self._models[name].info.role == "questions"
        return Queue(
            max_items=1 if writes else batch.max_items,
            max_cost=batch.max_cost_tokens,
            max_waiting=queue.max_cost,
            max_batch_s=batch.max_batch_ms / 1000,
            linger_s=batch.linger_ms / 1000,
            shares=self._shares,
        )

    def handle(self, metric: str, role: str) -> Handle | None:
        """The handle that serves *role* for a metric, or None."""
        return self._serving.get((metric, role))

    def stalled(self) -> bool:
        """Work waits, and no batch has finished for too long."""
        return any(device.stalled_for() > self._settings.server.stall_s for device in self.devices)
