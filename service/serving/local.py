"""The local runtime: every configured model in this process, each on its device."""

from collections.abc import Callable, Mapping

from models.core.contract import RemoteModel
from models.core.family import Loaded
from service.core.concurrency.cpu_threads import FairThreads
from service.core.redis.client import RedisClient
from service.core.settings.tree import Settings
from service.observability.instruments import Instruments
from service.serving.backends.local import LocalBackend
from service.serving.base_runtime import BaseRuntime, queue_of, shares_of
from service.serving.batcher.cores import all_cores
from service.serving.batcher.device import Device, LocalModel
from service.serving.batcher.scheduler import HostedModel


class LocalRuntime(BaseRuntime):
    """
    Devices, connections and handles for *models*.

    A model that generates text gets a thread of its own: one generation takes as long as many batches.

    Args:
        on_broken: told once, in one line, when a device cannot go on.
        others: see `BaseRuntime`.
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
        self.devices: list[Device] = []

    def stalled(self) -> bool:
        """Whether work waits on a device and no batch has finished there for `server.stall_s`."""
        return any(device.stalled_for() > self._settings.server.stall_s for device in self.devices)

    async def _start(self) -> None:
        """Models on one device share its threads, but for those that generate."""
        places: dict[tuple[str, bool], list[LocalModel]] = {}
        for name, model in self._models.items():
            if isinstance(model, RemoteModel):
                await self._serve_remote(name, model)
                continue
            table, generates = self._settings.models[name], model.info.generates
            queue = queue_of(table, self._settings.queue, alone=generates)
            place = (str(getattr(table, "device", model.info.device)), generates)
            places.setdefault(place, []).append(HostedModel(name, model, queue))
        for (device, generates), residents in places.items():
            await self._start_device(residents, 1 if generates or device != "cpu" else all_cores())

    async def _start_device(self, residents: list[LocalModel], cores: int) -> None:
        """Have a new device serve *residents*."""
        device = Device(
            residents,
            self._instruments,
            cores=cores,
            on_broken=self._on_broken,
            shares=shares_of(self._settings.queue),
        )
        await self._stack.enter_async_context(device)
        self.devices.append(device)
        for resident in residents:
            self._serve_own(LocalBackend(resident, device, self._cpu))
