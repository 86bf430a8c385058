"""The runtime: a handle, with its cache, for each configured model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import chain
from time import monotonic
from typing import Self

from models.core.contract import RemoteModel
from models.core.copies import Unloaded, copies_of
from models.core.family import Loaded
from models.core.settings import Batch, ModelSettings, RemoteSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.lanes import Shares
from service.core.redis import RedisClient
from service.core.settings import SettingsError
from service.core.settings.environment import read_secret
from service.core.settings.sections import QueueSettings
from service.core.settings.tree import Settings
from service.observability.instruments import Instruments
from service.serving.backends.contract import Backend
from service.serving.backends.local import LocalBackend, WeightLoader
from service.serving.backends.remote import RemoteBackend
from service.serving.backends.upstream import Upstream
from service.serving.batcher.batching import Queue
from service.serving.batcher.device import Device, all_cores
from service.serving.batcher.pool import LocalModel, Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.cache import Cache, OutcomeCache
from service.serving.handle import Handle
from service.serving.loading import with_recipe
from service.serving.redis_cache import RedisCache


class Runtime(ABC):
    """
    All configured models, wherever they run.  As an async context manager it serves.

    Args:
        models: loaded in this process or served by others, by configured name.
        assigned: the configured name that serves each (metric, role).
        cpu: the threads that prepare calls, by lane.
        redis: shares outcomes with other processes, if `cache.scores` is a Redis.
        clock: of models that servers run, in seconds.

    Attributes:
        handles: by configured name.
    """

    def __init__(
        self,
        models: Mapping[str, Loaded],
        settings: Settings,
        assigned: Mapping[tuple[str, str], str],
        cpu: Mapping[str, FairThreads],
        instruments: Instruments,
        redis: RedisClient | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._models, self._settings, self._assigned = dict(models), settings, dict(assigned)
        self._cpu, self._instruments, self._clock = cpu, instruments, clock
        self._stack = AsyncExitStack()
        cache = settings.cache
        self._memory = OutcomeCache(0 if cache.scores == "off" else cache.scores_mb * 2**20)
        self._redis, self._redis_caches = redis, list[RedisCache]()
        self.handles: dict[str, Handle] = {}

    async def __aenter__(self) -> Self:
        """Warm the models up and serve.  Raises `SettingsError`, and what a model raises on its example."""
        async with AsyncExitStack() as starting:  # if a start fails, close what has started
            starting.push_async_exit(self)
            await self._start()
            starting.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Answer waiting calls, and close in reverse."""
        await self._stack.aclose()
        for cache in self._redis_caches:  # backends answer until they are closed
            await cache.aclose()

    @abstractmethod
    async def _start(self) -> None:
        """Make a handle for every model; put what has to be closed on the stack."""

    @abstractmethod
    def stalled(self) -> bool:
        """Return True if no batch has finished for too long: the process should be restarted."""

    def handle(self, metric: str, role: str) -> Handle | None:
        """Return the handle that serves *role* for *metric*; None if no model does."""
        return self.handles.get(self._assigned.get((metric, role), ""))

    def _serve(self, backend: Backend) -> None:
        """Make the handle of *backend*."""
        backend.presence.waits = self._settings.queue.wait_for_models
        handle = self.handles[backend.name] = Handle(backend, self._cache())
        self._stack.push_async_callback(handle.aclose)

    def _serve_own(self, backend: Backend) -> None:
        """Make the handle of *backend*, whose model is configured by this process's settings."""
        if not backend.presence.awaited:
            backend.info = with_recipe(backend.info, self._settings.models[backend.name])
        self._serve(backend)

    async def _serve_remote(self, name: str, model: RemoteModel) -> None:
        """Make the handle of a *model* that another process serves.  Raises `SettingsError`."""
        self._serve_own(await self._stack.enter_async_context(self._remote(name, model)))

    def _cache(self) -> Cache:
        """Return the cache of one model; its requests to Redis do not wait for other models."""
        if self._redis is None:
            return self._memory
        ttl_s = self._settings.cache.scores_ttl_s
        self._redis_caches.append(RedisCache(self._memory, self._redis, ttl_s, self._instruments))
        return self._redis_caches[-1]

    def _remote(self, name: str, model: RemoteModel) -> RemoteBackend:
        """Connect to the server of *model*.  Raises `SettingsError` if its settings name none."""
        settings = self._settings.models[name]
        if not isinstance(settings, RemoteSettings):
            raise SettingsError(
                f"models.{name}: the family {settings.family} gives a RemoteModel, but its settings "
                "are not RemoteSettings"
            )
        upstream = Upstream(
            settings.base_url,
            api_key=read_secret(settings.api_key_env) if settings.api_key_env else "",
            timeout_s=settings.timeout_s,
            max_in_flight=settings.max_in_flight,
        )
        return RemoteBackend(
            name,
            model,
            settings,
            upstream,
            queue_of(settings, self._settings.queue, alone=True),
            cpu=self._cpu,
            instruments=self._instruments,
            clock=self._clock,
        )


def queue_of(table: ModelSettings, queue: QueueSettings, *, alone: bool) -> Queue:
    """
    Return a queue for the model that *table* configures.

    Args:
        alone: take calls one by one, as for generated texts, which would wait for the longest of their
            batch, and for servers, which batch calls themselves.
    """
    batch: Batch = getattr(table, "batch", Batch())  # the family of a package may have none
    return Queue(
        max_items=1 if alone else batch.max_items,
        max_cost=batch.max_cost_tokens,
        max_waiting=queue.max_cost,
        max_batch_s=batch.max_batch_ms / 1000,
        linger_s=batch.linger_ms / 1000,
        shares=Shares(queue.weights.interactive, queue.weights.bulk, queue.ageing_s),
    )


class LocalRuntime(Runtime):
    """
    Models on devices of this process, and connections to those that servers run.

    A model that generates text gets a thread of its own: one generation takes as long as many batches.

    Args:
        on_broken: called with the reason if a device cannot continue.
        weights: loads and moves the weights of models that go and come.
        others: see `Runtime`.
    """

    def __init__(
        self,
        models: Mapping[str, Loaded],
        settings: Settings,
        assigned: Mapping[tuple[str, str], str],
        cpu: Mapping[str, FairThreads],
        instruments: Instruments,
        on_broken: Callable[[str], None],
        redis: RedisClient | None = None,
        weights: WeightLoader | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__(models, settings, assigned, cpu, instruments, redis, clock=clock)
        self._on_broken, self._weights = on_broken, weights
        self.pools: list[Pool] = []
        # A load waits for the hub, or for the one before; a move, or a load from the cache, does not.
        self._loader, self._mover = FairThreads(max(1, len(models)), "loads"), FairThreads(2, "moves")

    def stalled(self) -> bool:
        """Return True if work waits on a device and no batch has finished there for `server.stall_s`."""
        return any(pool.stalled_for() > self._settings.server.stall_s for pool in self.pools)

    async def _start(self) -> None:
        """Start a pool for the models that share devices, and other ones for those that generate."""
        self._stack.callback(self._mover.shutdown)
        self._stack.callback(self._loader.shutdown)
        hosted_models = []
        for name, model in self._models.items():
            if isinstance(model, RemoteModel):
                await self._serve_remote(name, model)
                continue
            table = self._settings.models[name]
            queue = queue_of(table, self._settings.queue, alone=model.info.generates)
            device = str(getattr(table, "device", model.info.device))
            hosted = HostedModel(name, model, queue, copies=copies_of(device, model))
            hosted.paused = isinstance(model, Unloaded)
            hosted_models.append(hosted)
        for generates in (False, True):
            for group in sharing([each for each in hosted_models if each.model.info.generates == generates]):
                await self._start_pool(group, cores=1 if generates else all_cores())

    async def _start_pool(self, hosted_models: Sequence[LocalModel], cores: int) -> None:
        """Serve *hosted_models* on their devices; a CPU without a number has *cores*."""
        names = dict.fromkeys(name for each in hosted_models for name in each.copies)
        pool = Pool(
            hosted_models,
            self._instruments,
            devices=[Device(name, cores if name == "cpu" else 1) for name in names],
            on_broken=self._on_broken,
        )
        await self._stack.enter_async_context(pool)
        self.pools.append(pool)
        for hosted in hosted_models:
            table = self._settings.models[hosted.name]
            backend = LocalBackend(
                hosted, pool, table, self._cpu, self._mover, self._weights, loader=self._loader
            )
            if hosted.paused:
                backend.presence.wait_for_need()
            self._serve_own(backend)


def sharing(hosted_models: Sequence[LocalModel]) -> list[list[LocalModel]]:
    """Return groups of models: those that share a device, directly or through others, are in one."""
    groups: list[list[LocalModel]] = []
    for hosted in hosted_models:
        joined = [
            group for group in groups if any(each.copies.keys() & hosted.copies.keys() for each in group)
        ]
        groups = [group for group in groups if group not in joined]
        groups.append([*chain.from_iterable(joined), hosted])
    return groups
