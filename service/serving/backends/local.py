"""A model on a device of this process."""

from collections.abc import Mapping, Sequence
from functools import partial

from models.core.calls import Call
from models.core.contract import Prepared
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import ScoregateError
from service.serving.backends.prepare import prepare_all
from service.serving.backends.queued import StartedQueuedCall
from service.serving.batcher.device import Device, LocalModel
from service.serving.context import Context
from service.serving.contract import AdmissionForecast, Backend, WorkEstimate
from service.serving.demand import Demand
from service.serving.reservation import Reservation


class LocalBackend(Backend):
    """Queues calls; the device's batches answer them."""

    def __init__(self, resident: LocalModel, device: Device, cpu: Mapping[str, FairThreads]) -> None:
        self.name, self.info = resident.name, resident.model.info
        self._resident, self._device, self._cpu = resident, device, cpu

    @property
    def missing(self) -> str:
        """Empty while the device runs batches."""
        return "" if self._device.running else "not serving"

    def outlook(self, lane: str, demand: Demand | None = None) -> AdmissionForecast:
        """By the measured cost of batches on the device."""
        return self._device.outlook(self._resident, lane, demand)

    def extent(self, demand: Demand) -> WorkEstimate:
        """By the same."""
        return self._device.extent(self._resident, demand)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """In the tokens that calls lately had."""
        return self._resident.queue.reserve(lane, demand, parts)

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """On one of the lane's CPU threads, ahead of the device."""
        resident = self._resident
        with self._device.expecting(resident, lane, len(calls)):
            return await self._cpu[lane].run(prepare_all, resident.model.prepare, self.name, calls)

    def start(self, prepared: Prepared, lane: str, deadline: float, context: Context) -> StartedQueuedCall:
        """Queue the call; who is in the next batch is decided when the device is free."""
        call = self._device.submit(self._resident, prepared, lane, deadline)
        call.span = context.span
        return StartedQueuedCall(call, partial(self._resident.queue.promote, call))
