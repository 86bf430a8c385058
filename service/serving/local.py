"""The local runtime: runs each configured model of this process on its device."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from models.core.contract import RemoteModel
from models.core.copies import copies_of
from models.core.family import Loaded
from service.core.concurrency.cpu_threads import FairThreads
from service.core.redis import RedisClient
from service.core.settings.tree import Settings
from service.observability.instruments import Instruments
from service.serving.backends.local import LocalBackend
from service.serving.batcher.device import Device, all_cores
from service.serving.batcher.pool import LocalModel, Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.runtime import Runtime, queue_of


class LocalRuntime(Runtime):
    """
    Models on devices of this process, and connections to those that servers run.

    A model that generates text gets a thread of its own: one generation takes as long as many batches.

    Args:
        on_broken: called with the reason if a device cannot continue.
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
    ) -> None:
        super().__init__(models, settings, assigned, cpu, instruments, redis)
        self._on_broken = on_broken
        self.pools: list[Pool] = []
        self._mover = FairThreads(2, "models")  # one load may hang

    def stalled(self) -> bool:
        """Return True if work waits on a device and no batch has finished there for `server.stall_s`."""
        return any(pool.stalled_for() > self._settings.server.stall_s for pool in self.pools)

    async def _start(self) -> None:
        """Start a pool for the models that share devices, and other ones for those that generate."""
        self._stack.callback(self._mover.shutdown)
        hosted_models = []
        for name, model in self._models.items():
            if isinstance(model, RemoteModel):
                await self._serve_remote(name, model)
                continue
            table = self._settings.models[name]
            queue = queue_of(table, self._settings.queue, alone=model.info.generates)
            device = str(getattr(table, "device", model.info.device))
            hosted_models.append(HostedModel(name, model, queue, copies=copies_of(device, model)))
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
            self._serve_own(LocalBackend(hosted, pool, table, self._cpu, self._mover))


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
