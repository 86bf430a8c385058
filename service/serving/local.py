"""The local runtime: every configured model in this process, each on its device."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from typing import Self

from models.contract import RemoteModel
from models.family import Loaded
from models.settings import Batch, ModelSettings, RemoteSettings
from service.redis.client import RedisClient
from service.serving.backends.contract import Backend
from service.serving.backends.local import LocalBackend
from service.serving.backends.remote import RemoteBackend
from service.serving.backends.upstream import Upstream
from service.serving.batcher.batch import Shares
from service.serving.batcher.cores import CORES
from service.serving.batcher.device import Device, LocalModel
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import Resident
from service.serving.cache.contract import Cache
from service.serving.cache.memory import OutcomeCache
from service.serving.cache.redis import RedisCache, recipe_of
from service.serving.handle import Handle
from service.settings import SettingsError
from service.settings.environment import read_secret
from service.settings.tree import Settings
from service.telemetry import Instruments


class LocalRuntime:
    """
    Devices, connections and handles for *models*.

    A model that generates text gets a thread of its own: one generation takes as long as many batches.

    Args:
        models: loaded, by configured name.
        assigned: the configured name that serves each (metric, role).
        cpu: the threads that prepare calls, by lane.
        on_broken: told once, in one line, when a device cannot go on.
        redis: where outcomes are shared with other processes, if they are.
    """

    def __init__(
        self,
        models: Mapping[str, Loaded],
        settings: Settings,
        assigned: Mapping[tuple[str, str], str],
        cpu: Mapping[str, Executor],
        instruments: Instruments,
        on_broken: Callable[[str], None],
        redis: RedisClient | None = None,
    ) -> None:
        self._models, self._settings, self._assigned = dict(models), settings, dict(assigned)
        self._cpu, self._instruments, self._on_broken = cpu, instruments, on_broken
        self._stack = AsyncExitStack()
        weights, cache = settings.queue.weights, settings.cache
        self._shares = Shares(weights.interactive, weights.bulk, settings.queue.ageing_s)
        self._memory = None if cache.scores == "off" else OutcomeCache(cache.scores_mb * 2**20)
        self._redis, self._redis_caches = redis, list[RedisCache]()
        self.devices: list[Device] = []
        self.handles: dict[str, Handle] = {}

    async def __aenter__(self) -> Self:
        """Build, warm, serve."""
        async with AsyncExitStack() as starting:  # what has started is closed where the rest fails
            starting.push_async_exit(self)
            await self._start()
            starting.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Drain and close, in reverse."""
        await self._stack.aclose()
        for cache in self._redis_caches:  # devices answer until they are closed
            await cache.aclose()

    def handle(self, metric: str, role: str) -> Handle | None:
        """The handle that serves *role* for *metric*; None where no model does."""
        return self.handles.get(self._assigned.get((metric, role), ""))

    def stalled(self) -> bool:
        """Whether work waits on a device and no batch has finished there for `server.stall_s`."""
        return any(device.stalled_for() > self._settings.server.stall_s for device in self.devices)

    async def _start(self) -> None:
        """Models on one device share its thread, but for those that generate."""
        places: dict[tuple[str, bool], list[LocalModel]] = {}
        for name, model in self._models.items():
            settings = self._settings.models[name]
            if isinstance(model, RemoteModel):
                self._serve(await self._stack.enter_async_context(self._remote(name, model, settings)))
                continue
            place = (str(getattr(settings, "device", model.info.device)), model.info.generates)
            places.setdefault(place, []).append(Resident(name, model, self._queue(model, settings)))
        for (_, generates), residents in places.items():
            await self._start_device(residents, cores=1 if generates else CORES)

    async def _start_device(self, residents: list[LocalModel], cores: int) -> None:
        """Have a new device serve *residents*."""
        device = Device(
            residents, self._instruments, cores=cores, on_broken=self._on_broken, shares=self._shares
        )
        await self._stack.enter_async_context(device)
        self.devices.append(device)
        for resident in residents:
            self._serve(LocalBackend(resident, device, self._cpu))

    def _serve(self, backend: Backend) -> None:
        handle = self.handles[backend.name] = Handle(backend, self._cache(backend.name))
        self._stack.push_async_callback(handle.aclose)

    def _cache(self, name: str) -> Cache | None:
        """Where one model's outcomes are kept, if anywhere."""
        if self._memory is None or self._redis is None:
            return self._memory
        recipe, ttl_s = recipe_of(self._settings.models[name]), self._settings.cache.scores_ttl_s
        self._redis_caches.append(RedisCache(self._memory, self._redis, recipe, ttl_s))
        return self._redis_caches[-1]

    def _remote(self, name: str, model: RemoteModel, settings: ModelSettings) -> RemoteBackend:
        """Raises `SettingsError` where a package's family serves a remote model without its settings."""
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
            self._queue(model, settings),
            cpu=self._cpu,
            instruments=self._instruments,
            shares=self._shares,
        )

    def _queue(self, model: Loaded, settings: ModelSettings) -> Queue:
        batch: Batch = getattr(settings, "batch", Batch())  # a package's family may do without
        # Texts are written one by one: a batch would only make the first wait for the last.  A server
        # is sent calls one by one, and batches them itself.
        alone = model.info.generates or isinstance(model, RemoteModel)
        return Queue(
            max_items=1 if alone else batch.max_items,
            max_cost=batch.max_cost_tokens,
            max_waiting=self._settings.queue.max_cost,
            max_batch_s=batch.max_batch_ms / 1000,
            linger_s=batch.linger_ms / 1000,
            shares=self._shares,
        )
