"""A model on a device of this process."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

from models.calls import Call
from models.contract import Prepared
from service.context import Context
from service.errors import ScoregateError
from service.serving.backends.contract import Backend, Outlook, Result, StartedCall
from service.serving.backends.prepare import prepare_all
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.device import Device
from service.serving.batcher.queue import Queue
from service.serving.batcher.scheduler import Resident


class LocalCall(StartedCall):
    """A call in a device's queue, or in one of its batches."""

    __slots__ = ("_call", "_queue")

    def __init__(self, call: QueuedCall, queue: Queue) -> None:
        self._call, self._queue = call, queue

    @property
    def result(self) -> "asyncio.Future[Result]":
        """Of the call in the queue."""
        return self._call.result

    @property
    def running(self) -> bool:
        """Whether its batch has begun."""
        return self._call.running

    def promote(self) -> None:
        """To the interactive lane; where its batch has begun, for the instruments only."""
        self._queue.promote(self._call)

    def extend(self, deadline: float) -> None:
        """A batch takes it until *deadline*."""
        self._call.deadline = deadline

    def cancel(self) -> None:
        """No batch takes it any more."""
        self._call.result.cancel()


class LocalBackend(Backend):
    """Queues calls; the device's batches answer them."""

    def __init__(self, resident: Resident, device: Device, cpu: Mapping[str, Executor]) -> None:
        self.name, self.info = resident.name, resident.model.info
        self._resident, self._device, self._cpu = resident, device, cpu

    @property
    def missing(self) -> str:
        """Empty while the device runs batches."""
        return "" if self._device.running else "not serving"

    def outlook(self, lane: str) -> Outlook:
        """By the measured cost of batches on the device."""
        queue = self._resident.queue
        full = f"the {lane} lane of {self.name} holds all that it may" if queue.is_full(lane) else ""
        return Outlook(full, self._device.wait_s(lane), queue.cost_model.typical_s)

    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """On one of the lane's CPU threads, ahead of the device."""
        resident, loop = self._resident, asyncio.get_running_loop()
        with self._device.expecting(resident, lane, len(calls)):
            return await loop.run_in_executor(self._cpu[lane], prepare_all, resident.model, self.name, calls)

    def start(self, prepared: Prepared, lane: str, deadline: float, context: Context) -> LocalCall:
        """Queue the call; who is in the next batch is decided when the device is free."""
        call = self._device.submit(self._resident, prepared, lane, deadline)
        return LocalCall(call, self._resident.queue)
