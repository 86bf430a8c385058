"""A model on devices of this process."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from models.core.calls import Call
from models.core.contract import CheckpointAway, CheckpointError, Model, Prepared, RemoteModel
from models.core.copies import copies_of
from models.core.family import Loaded
from models.core.settings import DeviceSettings, ModelSettings
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import Invalid, NotReady, ScoregateError
from service.core.retry_after import Shortage, expected_wait_s
from service.serving.backends.contract import Backend, prepare_all
from service.serving.batcher.device import loaded_torch
from service.serving.batcher.pool import LocalModel, Pool
from service.serving.job import Job
from service.serving.loading import check_loadable, load_model, with_recipe

LOAD_S = 3600.0  # longest load that an operator's request starts, a download included
log = logging.getLogger("scoregate.models")
T = TypeVar("T")


def bytes_of(copies: Mapping[str, Model]) -> int:
    """Return the memory of *copies* on their devices, in bytes."""
    if loaded_torch() is None:
        return 0
    from models.core.memory import device_bytes

    return sum(device_bytes(copy, device or "cpu") for device, copy in copies.items())


def offload(copy: Model) -> Callable[[], None]:
    """Move the weights of *copy* to the host's memory, and return what brings them back."""
    if loaded_torch() is None:
        return lambda: None
    from models.core.memory import Offloaded

    return Offloaded(copy).restore


def drop(copy: Model) -> None:
    """Free the weights of *copy*, which is of no more use."""
    if loaded_torch() is not None:
        from models.core.memory import Offloaded

        Offloaded(copy, keep=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightLoader:
    """
    The functions that load, move and free weights; each returns when it is done.

    Attributes:
        check: raises as `check_loadable`.
        load: raises as `load_model`.
        offload: moves the weights of a copy to the host's memory, and returns what brings them back.
        drop: frees the weights of a copy.
    """

    check: Callable[[str, ModelSettings, Mapping[str, int]], None] = check_loadable
    load: Callable[[str, ModelSettings], Loaded] = load_model
    offload: Callable[[Model], Callable[[], None]] = offload
    drop: Callable[[Model], None] = drop


class LocalBackend(Backend):
    """
    Queues calls; the pool's batches answer them.

    Args:
        mover: the threads on which weights are moved.
        weights: loads and moves them.
        loader: the threads on which they are downloaded and loaded; by default those of `mover`.
    """

    changes = ("offload", "unload", "revision")

    def __init__(
        self,
        hosted: LocalModel,
        pool: Pool,
        table: ModelSettings,
        cpu: Mapping[str, FairThreads],
        mover: FairThreads,
        weights: WeightLoader | None = None,
        *,
        loader: FairThreads | None = None,
    ) -> None:
        self.name, self.info = hosted.name, hosted.model.info
        self.queues, self.clock, self._hosted = [(pool.scheduler, hosted)], pool.clock, hosted
        self._pool, self._table, self._cpu, self._mover = pool, table, cpu, mover
        self._weights, self._loader = weights or WeightLoader(), loader or mover
        self._devices = pool.devices_of(hosted)
        self._restore: dict[str, Callable[[], None]] = {}  # one entry for the device of each offloaded copy

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
        return bytes_of(self._hosted.copies)

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Prepare on one of the lane's CPU threads; an idle device may wait for the calls meanwhile."""
        with self._hosted.queue.pending.expecting(lane, len(calls), self.clock):
            return await self._cpu[lane].run(prepare_all, self._hosted.model.prepare, self.name, calls)

    def start(self, job: Job) -> None:
        """Queue the job."""
        self._pool.submit(self._hosted, job)

    # --- the model goes and comes -----------------------------------------------------------------

    async def offload(self) -> None:
        """Move the weights of all copies to the host's memory; if that fails, serve on."""
        await self._pool.pause(self._hosted)
        try:
            await self._offload()
        except Exception:
            await self._serve_on(whole=not self._restore)
            raise

    async def unload(self) -> None:
        """Drop the weights of all copies; if that fails, load them again and serve on."""
        await self._pool.pause(self._hosted)
        self._restore.clear()
        try:
            for copy in tuple(self._hosted.copies.values()):
                await self._mover.run(self._weights.drop, copy)
        except Exception:
            await self._serve_on(whole=False)
            raise

    async def check(self, revision: str) -> None:
        """Download the files of *revision*, and check them and the memory for its weights."""
        table = self._table.model_copy(update={"revision": revision})
        given_back = {device: bytes_of({device: copy}) for device, copy in self._hosted.copies.items()}
        await self._within_limit(self._weights.check, self.name, table, given_back)

    async def load(self, revision: str = "") -> None:
        """
        Bring the weights back, from the host's memory or from the checkpoint, and check the example.

        If that fails, the devices' memory is given back again, and the model is as it was before.
        """
        if revision and revision != self.info.files:  # a commit names its content, other revisions do not
            await self._load_other(self._table.model_copy(update={"revision": revision}))
            return
        kept = bool(self._restore)
        try:
            if not kept:
                self._put(await self._load(self._table), self._table)
            for device in tuple(self._restore):
                if device in self._hosted.copies:  # it may have been taken out meanwhile
                    await self._mover.run(self._restore[device])
                del self._restore[device]
            await self._pool.warm(self._hosted)
        except Exception:
            await self._put_away(keep=kept)
            raise
        self._pool.resume(self._hosted)

    async def _load_other(self, table: ModelSettings) -> None:
        """Load the model of *table* in place of this one, which is away; if it fails, put this one back."""
        old, old_table, outcome = dict(self._hosted.copies), self._table, self._hosted.outcome
        restore, self._restore = self._restore, {}
        new: dict[str, Model] = {}
        try:
            new = await self._load(table)
            self._put(new, table)
            self._hosted.outcome = None  # another revision has another outcome
            await self._pool.warm(self._hosted)
        except Exception:
            await self._drop(new)
            self._put({device: old[device] for device in self._hosted.copies}, old_table)
            self._hosted.outcome, self._restore = outcome, restore
            raise
        self._pool.resume(self._hosted)

    async def _serve_on(self, *, whole: bool) -> None:
        """Serve after a failed change, if the model was here; load it first unless it is *whole*."""
        if self.presence.state != "leaving":
            return
        try:
            if not whole:
                await self.load()
            self._pool.resume(self._hosted)
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
            await self._drop(self._hosted.copies)
        self.presence.change("offloaded" if keep else "unloaded")

    async def _offload(self) -> None:
        """Move each copy to the host's memory that is not there."""
        for device, copy in tuple(self._hosted.copies.items()):
            if device not in self._restore:
                self._restore[device] = await self._mover.run(self._weights.offload, copy)

    async def _drop(self, copies: Mapping[str, Model]) -> None:
        """Free copies that are of no more use; log what fails."""
        for copy in tuple(copies.values()):
            try:
                await self._mover.run(self._weights.drop, copy)
            except Exception:
                log.error("weights not freed", extra={"model": self.name}, exc_info=True)

    async def _load(self, table: ModelSettings) -> dict[str, Model]:
        """Return copies of the model of *table* for the devices that serve.  Raises `Invalid`, `NotReady`."""
        serving = tuple(self._hosted.copies)  # those of a lost device are not among them
        if isinstance(table, DeviceSettings) and table.devices:
            table = table.model_copy(update={"devices": serving})
        loaded = await self._within_limit(self._weights.load, self.name, table)
        assert not isinstance(loaded, RemoteModel)  # a model that changes was a local one at the start
        copies = copies_of(serving[0], loaded)
        return {device: copies[device] for device in self._hosted.copies}

    async def _within_limit(self, work: Callable[..., T], *arguments: Any) -> T:
        """Call *work* on a thread for loads.  Raises `Invalid`, or `NotReady` for a temporary reason."""
        try:
            async with asyncio.timeout(LOAD_S) as limit:
                return await self._loader.run(work, *arguments)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise NotReady(f"models.{self.name}: not loaded within {LOAD_S:g} s") from exc
        except CheckpointAway as exc:
            raise NotReady(str(exc), retry_after_s=expected_wait_s(Shortage.MODEL)) from exc
        except CheckpointError as exc:
            raise Invalid(str(exc)) from exc

    def _put(self, copies: dict[str, Model], table: ModelSettings) -> None:
        self._hosted.copies, self._table = copies, table
        self._hosted.model = next(iter(copies.values()))
        self.info = with_recipe(self._hosted.model.info, table)
