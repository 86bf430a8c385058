"""A model on devices of this process."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from models.core.calls import Call
from models.core.contract import CheckpointAway, CheckpointError, Model, Prepared, RemoteModel
from models.core.copies import copies_of
from models.core.settings import DeviceSettings, ModelSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import Invalid, NotReady, ScoregateError
from service.observability.tracing.span import NO_SPAN, Span
from service.serving.backends.prepare import prepare_all
from service.serving.backends.queued import QueuedBackend
from service.serving.backends.weights import bytes_of, drop, offload
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.pool import LocalModel, Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.loading import load_model
from service.serving.presence import RETRY_S
from service.serving.recipe import with_recipe

LOAD_S = 3600.0  # longest load that an operator's request starts, a download included

log = logging.getLogger("scoregate.models")


class LocalBackend(QueuedBackend):
    """
    Queues calls; the pool's batches answer them.

    Args:
        mover: the thread on which weights are loaded and moved.
    """

    changes = ("offload", "unload", "swap")

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
        self._restore: dict[str, Callable[[], None]] = {}  # by device, of each offloaded copy

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
        """Move the weights of all copies to the host's memory; if that fails, serve on."""
        await self._pool.pause(self._resident)
        try:
            await self._offload()
        except Exception:
            await self._serve_on(whole=not self._restore)
            raise

    async def unload(self) -> None:
        """Drop the weights of all copies; if that fails, load them again and serve on."""
        await self._pool.pause(self._resident)
        self._restore.clear()
        try:
            for copy in tuple(self._resident.copies.values()):
                await self._mover.run(drop, copy)
        except Exception:
            await self._serve_on(whole=False)
            raise

    async def load(self) -> None:
        """
        Bring the weights back, from the host's memory or from the checkpoint, and check the example.

        If that fails, the devices' memory is given back again.
        """
        kept = bool(self._restore)
        try:
            if not kept:
                self._put(await self._load(self._table), self._table)
            for device in tuple(self._restore):
                if device in self._resident.copies:  # it may have been taken out meanwhile
                    await self._mover.run(self._restore[device])
                del self._restore[device]
            await self._pool.warm(self._resident)
        except Exception:
            await self._put_away(keep=kept)
            raise
        self._pool.resume(self._resident)

    async def replace(self, revision: str, drain: Callable[[], Awaitable[None]]) -> None:
        """
        Load *revision*, check it, *drain* the model of calls, and replace it, unless it is the same model.
        """
        table = self._table.model_copy(update={"revision": revision})
        copies = await self._load(table)
        if self._is(next(iter(copies.values())), table):
            await self._drop(copies)
            return
        try:
            outcome = await self._pool.warm_copies(self._resident, copies)
        except Exception:
            await self._drop(copies)
            raise
        await drain()
        await self._pool.pause(self._resident)
        old = self._resident.copies  # without those of devices that were lost meanwhile
        self._put({device: copies.pop(device) for device in old}, table)
        self._resident.outcome = outcome
        self.replacements += 1
        self._pool.resume(self._resident)
        await self._drop(old)
        await self._drop(copies)

    async def add_revision(self, revision: str) -> "LocalBackend":
        """Load *revision* on the devices that serve, warm it up, and serve it with a queue of its own."""
        table = self._table.model_copy(update={"revision": revision})
        copies = await self._load(table)
        model = next(iter(copies.values()))
        try:
            if self._is(model, table):
                raise Invalid(f"{self.info.label} serves already")
            queue = self._resident.queue.empty()
            resident = HostedModel(f"{self.name}@{revision}", model, queue, copies=copies, optional=True)
            await self._pool.add(resident)
        except BaseException:
            await self._drop(copies)
            raise
        other = LocalBackend(resident, self._pool, table, self._cpu, self._mover)
        other.info = with_recipe(other.info, table)
        return other

    async def discard(self) -> None:
        """Take the model out of the pool when no batch of it runs, and drop its weights."""
        await self._pool.remove(self._resident)
        await self._drop(self._resident.copies)

    async def _serve_on(self, *, whole: bool) -> None:
        """Serve after a failed change, if the model was here; load it first unless it is *whole*."""
        if self.presence.state != "leaving":
            return
        try:
            if not whole:
                await self.load()
            self._pool.resume(self._resident)
        except Exception:  # it is away now, and an operator can load it
            log.error("model not brought back", extra={"model": self.name}, exc_info=True)

    async def _put_away(self, *, keep: bool) -> None:
        """Give the devices' memory back after a failed load; drop the weights unless they can be kept."""
        try:
            if keep:
                await self._offload()
        except Exception:
            log.error("weights not kept", extra={"model": self.name}, exc_info=True)
            keep = False
        if not keep:
            self._restore.clear()
            await self._drop(self._resident.copies)
        self.presence.change("offloaded" if keep else "unloaded")

    async def _offload(self) -> None:
        """Move each copy to the host's memory that is not there."""
        for device, copy in tuple(self._resident.copies.items()):
            if device not in self._restore:
                self._restore[device] = await self._mover.run(offload, copy)

    async def _drop(self, copies: Mapping[str, Model]) -> None:
        """Free copies that are of no more use; log what fails."""
        for copy in tuple(copies.values()):
            try:
                await self._mover.run(drop, copy)
            except Exception:
                log.error("weights not freed", extra={"model": self.name}, exc_info=True)

    async def _load(self, table: ModelSettings) -> dict[str, Model]:
        """Return copies of the model of *table* for the devices that serve.  Raises `Invalid`, `NotReady`."""
        serving = tuple(self._resident.copies)  # those of a lost device are not among them
        if isinstance(table, DeviceSettings) and table.devices:
            table = table.model_copy(update={"devices": serving})
        try:
            async with asyncio.timeout(LOAD_S) as limit:
                loaded = await self._mover.run(load_model, self.name, table)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise NotReady(f"models.{self.name}: not loaded within {LOAD_S:g} s") from exc
        except CheckpointAway as exc:
            raise NotReady(str(exc), retry_after_s=RETRY_S) from exc
        except CheckpointError as exc:
            raise Invalid(str(exc)) from exc
        assert not isinstance(loaded, RemoteModel)  # as at the start
        copies = copies_of(serving[0], loaded)
        return {device: copies[device] for device in self._resident.copies}

    def _is(self, model: Model, table: ModelSettings) -> bool:
        """Return True if *model*, loaded by *table*, is the one that serves, whatever its name."""
        serving = with_recipe(self._resident.model.info, self._table)
        return with_recipe(model.info, table).identity == serving.identity

    def _put(self, copies: dict[str, Model], table: ModelSettings) -> None:
        self._resident.copies, self._table = copies, table
        self._resident.model = next(iter(copies.values()))
        self.info = with_recipe(self._resident.model.info, table)
