"""A model on a device of this process."""

from collections.abc import Mapping, Sequence

from models.core.calls import Call
from models.core.contract import Prepared
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import ScoregateError
from service.observability.tracing.span import NO_SPAN, Span
from service.serving.backends.prepare import prepare_all
from service.serving.backends.queued import QueuedBackend
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.device import Device, LocalModel


class LocalBackend(QueuedBackend):
    """Queues calls; the device's batches answer them."""

    def __init__(self, resident: LocalModel, device: Device, cpu: Mapping[str, FairThreads]) -> None:
        super().__init__(resident, device.scheduler, device.clock)
        self._device, self._cpu = device, cpu

    @property
    def missing(self) -> str:
        """Empty while the device runs batches."""
        return "" if self._device.running else "not serving"

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Prepare on one of the lane's CPU threads; the device may wait for the calls meanwhile."""
        with self._device.expecting(self._resident, lane, len(calls)):
            return await self._cpu[lane].run(prepare_all, self._resident.model.prepare, self.name, calls)

    def start(
        self, prepared: Prepared, lane: str, deadline: float, *, span: Span = NO_SPAN, request_id: str = ""
    ) -> QueuedCall:
        """Queue the call."""
        call = self._device.submit(self._resident, prepared, lane, deadline)
        call.span = span
        return call
