"""A model on devices of this process."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from models.core.calls import Call
from models.core.contract import CheckpointError, Model, Prepared, RemoteModel
from models.core.copies import copies_of
from models.core.settings import ModelSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import Invalid, ScoregateError
from service.observability.tracing.span import NO_SPAN, Span
from service.serving.backends.prepare import prepare_all
from service.serving.backends.queued import QueuedBackend
from service.serving.backends.weights import bytes_of, drop, offload
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.pool import LocalModel, Pool
from service.serving.loading import load_model
from service.serving.recipe import with_recipe


class LocalBackend(QueuedBackend):
    """
    Queues calls; the pool's batches answer them.

    Args:
        mover: the thread on which weights are loaded and moved.
    """

    def __init__(
        self,
        resident: LocalModel,
        pool: Pool,
        table: ModelSettings,
        cpu: Mapping[str, FairThreads],
        mover: FairThreads,
    ) -> None:
        super().__init__(resident, pool.scheduler, pool.clock)
        self._pool, self._table, self._cpu, self._mover = pool, table, cpu, mover
        self._devices = pool.devices_of(resident)
        self._restore: list[Callable[[], None]] = []  # of each offloaded copy

    @property
    def missing(self) -> str:
        """Empty while the pool runs batches and the model is here."""
        return self.presence.reason if self._pool.running else "not serving"

    @property
    def devices(self) -> dict[str, str]:
        """Each device that had a copy at the start, and why it was taken out; empty while it serves."""
        return {device.name: device.fault for device in self._devices}

    @property
    def device_bytes(self) -> int:
        """Memory on its devices in bytes."""
        return bytes_of(self._resident.copies)

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

    # --- the model goes and comes -----------------------------------------------------------------

    async def offload(self) -> None:
        """Move the weights of all copies to the host's memory."""
        await self._pool.pause(self._resident)
        for copy in self._resident.copies.values():
            self._restore.append(await self._mover.run(offload, copy))

    async def unload(self) -> None:
        """Drop the weights of all copies."""
        await self._pool.pause(self._resident)
        self._restore.clear()
        for copy in self._resident.copies.values():
            await self._mover.run(drop, copy)

    async def load(self) -> None:
        """Bring the weights back, from the host's memory or from the checkpoint, and check the example."""
        if not self._restore:
            self._put(await self._load(self._table), self._table)
        while self._restore:
            await self._mover.run(self._restore[-1])
            self._restore.pop()
        await self._pool.warm(self._resident)
        self._pool.resume(self._resident)

    async def replace(self, revision: str, drain: Callable[[], Awaitable[None]]) -> None:
        """Load *revision*, check it, *drain* the model of calls, and replace it."""
        table = self._table.model_copy(update={"revision": revision})
        copies = await self._load(table)
        outcome = await self._pool.warm_copies(self._resident, copies)
        await drain()
        await self._pool.pause(self._resident)
        old = self._resident.copies
        self._put(copies, table)
        for copy in old.values():
            await self._mover.run(drop, copy)
        self._resident.outcome = outcome
        self.replacements += 1
        self._pool.resume(self._resident)

    async def _load(self, table: ModelSettings) -> dict[str, Model]:
        """Return copies of the model of *table* for the devices that serve.  Raises `Invalid`."""
        try:
            loaded = await self._mover.run(load_model, self.name, table)
        except CheckpointError as exc:
            raise Invalid(str(exc)) from exc
        assert not isinstance(loaded, RemoteModel)  # as at the start
        serving = self._resident.copies  # those of a lost device are not among them
        copies = copies_of(next(iter(serving)), loaded)
        return {device: copies[device] for device in serving}

    def _put(self, copies: dict[str, Model], table: ModelSettings) -> None:
        self._resident.copies, self._table = copies, table
        self._resident.model = next(iter(copies.values()))
        self.info = with_recipe(self._resident.model.info, table)
