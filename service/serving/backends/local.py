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
from service.serving.batcher.pool import LocalModel, Pool


class LocalBackend(QueuedBackend):
    """Queues calls; the pool's batches answer them."""

    def __init__(self, resident: LocalModel, pool: Pool, cpu: Mapping[str, FairThreads]) -> None:
        super().__init__(resident, pool.scheduler, pool.clock)
        self._pool, self._cpu = pool, cpu
        self._devices = pool.devices_of(resident)

    @property
    def missing(self) -> str:
        """Empty while the pool runs batches."""
        return "" if self._pool.running else "not serving"

    @property
    def devices(self) -> dict[str, str]:
        """Each device that had a copy at the start, and why it was taken out; empty while it serves."""
        return {device.name: device.fault for device in self._devices}

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Prepare on one of the lane's CPU threads; an idle device may wait for the calls meanwhile."""
        with self._pool.expecting(self._resident, lane, len(calls)):
            return await self._cpu[lane].run(prepare_all, self._resident.model.prepare, self.name, calls)

    def start(
        self, prepared: Prepared, lane: str, deadline: float, *, span: Span = NO_SPAN, request_id: str = ""
    ) -> QueuedCall:
        """Queue the call."""
        call = self._pool.submit(self._resident, prepared, lane, deadline)
        call.span = span
        return call
