"""The local runtime: runs each configured model of this process on its device."""

from collections.abc import Callable, Mapping

from models.core.contract import RemoteModel
from models.core.family import Loaded
from service.core.concurrency.cpu_threads import FairThreads
from service.core.redis.client import RedisClient
from service.core.settings.tree import Settings
from service.observability.instruments import Instruments
from service.serving.backends.local import LocalBackend
from service.serving.batcher.cpu_policy import CpuPolicy, all_cores
from service.serving.batcher.device import Device, LocalModel
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
        self.devices: list[Device] = []

    def stalled(self) -> bool:
        """Return True if work waits on a device and no batch has finished there for `server.stall_s`."""
        return any(device.stalled_for() > self._settings.server.stall_s for device in self.devices)

    async def _start(self) -> None:
        """Start a device for the models on it, and another one for those on it that generate."""
        devices: dict[tuple[str, bool], list[LocalModel]] = {}
        for name, model in self._models.items():
            if isinstance(model, RemoteModel):
                await self._serve_remote(name, model)
                continue
            table, generates = self._settings.models[name], model.info.generates
            queue = queue_of(table, self._settings.queue, alone=generates)
            device = str(getattr(table, "device", model.info.device))
            devices.setdefault((device, generates), []).append(HostedModel(name, model, queue))
        for (device, generates), residents in devices.items():
            cores = 1 if generates else all_cores()
            await self._start_device(residents, CpuPolicy(cores) if device == "cpu" else None)

    async def _start_device(self, residents: list[LocalModel], cpu: CpuPolicy | None) -> None:
        """Serve *residents* on a new device."""
        device = Device(
            residents,
            self._instruments,
            cpu=cpu,
            on_broken=self._on_broken,
        )
        await self._stack.enter_async_context(device)
        self.devices.append(device)
        for resident in residents:
            self._serve_own(LocalBackend(resident, device, self._cpu))
