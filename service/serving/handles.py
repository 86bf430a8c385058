"""The handles of all configured models, each with its cache; and backends that every runtime has."""

from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AsyncExitStack

from models.contract import RemoteModel
from models.settings import Batch, ModelSettings, RemoteSettings
from service.redis.client import RedisClient
from service.serving.backends.contract import Backend
from service.serving.backends.remote import RemoteBackend
from service.serving.backends.upstream import Upstream
from service.serving.batcher.batch import Shares
from service.serving.batcher.queue import Queue
from service.serving.cache.contract import Cache
from service.serving.cache.memory import OutcomeCache
from service.serving.cache.redis import RedisCache, recipe_of
from service.serving.handle import Handle
from service.settings import SettingsError
from service.settings.environment import read_secret
from service.settings.sections import QueueSettings
from service.settings.tree import Settings
from service.telemetry import Instruments


class Handles:
    """
    Handles by configured name, of models wherever they are.

    Args:
        assigned: the configured name that serves each (metric, role).
        cpu: the threads that prepare calls, by lane.
        redis: where outcomes are shared with other processes, if they are.
    """

    def __init__(
        self,
        settings: Settings,
        assigned: Mapping[tuple[str, str], str],
        cpu: Mapping[str, Executor],
        instruments: Instruments,
        redis: RedisClient | None = None,
    ) -> None:
        self._settings, self._assigned = settings, dict(assigned)
        self._cpu, self._instruments = cpu, instruments
        self._stack = AsyncExitStack()
        cache = settings.cache
        self._memory = None if cache.scores == "off" else OutcomeCache(cache.scores_mb * 2**20)
        self._redis, self._redis_caches = redis, list[RedisCache]()
        self.by_name: dict[str, Handle] = {}

    def of(self, metric: str, role: str) -> Handle | None:
        """The handle that serves *role* for *metric*; None where no model does."""
        return self.by_name.get(self._assigned.get((metric, role), ""))

    def serve(self, backend: Backend) -> None:
        """Have a handle ask *backend*."""
        self.by_name[backend.name] = Handle(backend, self._cache(backend.name))

    async def serve_remote(self, name: str, model: RemoteModel) -> None:
        """Have a handle ask a *model* that another process serves.  Raises `SettingsError`."""
        self.serve(await self._stack.enter_async_context(self._remote(name, model)))

    async def close(self) -> None:
        """Begin nothing new, and let what is being prepared be answered."""
        for handle in self.by_name.values():
            await handle.aclose()
        await self._stack.aclose()

    async def close_caches(self) -> None:
        """Keep nothing any more; backends answer until they are closed."""
        for cache in self._redis_caches:
            await cache.aclose()

    def _cache(self, name: str) -> Cache | None:
        """Where one model's outcomes are kept, if anywhere."""
        if self._memory is None or self._redis is None:
            return self._memory
        recipe, ttl_s = recipe_of(self._settings.models[name]), self._settings.cache.scores_ttl_s
        self._redis_caches.append(RedisCache(self._memory, self._redis, recipe, ttl_s))
        return self._redis_caches[-1]

    def _remote(self, name: str, model: RemoteModel) -> RemoteBackend:
        """Raises `SettingsError` where a package's family serves a remote model without its settings."""
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
            shares=shares_of(self._settings.queue),
        )


def shares_of(queue: QueueSettings) -> Shares:
    """How lanes share, by the settings."""
    return Shares(queue.weights.interactive, queue.weights.bulk, queue.ageing_s)


def queue_of(table: ModelSettings, queue: QueueSettings, *, alone: bool) -> Queue:
    """
    The queue of the model that *table* configures.

    Args:
        alone: calls are taken one by one.  Texts are: a batch would only make the first wait for the
            last.  A server is sent calls one by one too, and batches them itself.
    """
    batch: Batch = getattr(table, "batch", Batch())  # a package's family may do without
    return Queue(
        max_items=1 if alone else batch.max_items,
        max_cost=batch.max_cost_tokens,
        max_waiting=queue.max_cost,
        max_batch_s=batch.max_batch_ms / 1000,
        linger_s=batch.linger_ms / 1000,
        shares=shares_of(queue),
    )
