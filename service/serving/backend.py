"""What stands behind a handle: prepares calls, and answers them in its own time."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from models.base import Model, ModelError, ModelInfo, RemoteModel
from service.context import Context
from service.errors import CallRefused, LaneFull, ModelFault
from service.serving.batching import Entry, Ticket
from service.serving.device import Device, Resident
from service.telemetry import INTERACTIVE

CAUTION = 1.15  # what comes too late after all was work for nothing


class Backend(ABC):
    """
    A model, here or elsewhere.

    Attributes:
        name: under `models` in the settings.
        info: what is loaded or served.
    """

    name: str
    info: ModelInfo

    @property
    @abstractmethod
    def missing(self) -> str:
        """Why the model can't be asked now; empty where it can."""

    @abstractmethod
    def admit(self, lane: str, left_s: float) -> None:
        """Raises `LaneFull` or `Overloaded` for a request in *lane* that has *left_s* seconds."""

    @abstractmethod
    async def prepare(self, calls: Sequence[Any], lane: str) -> list[Any]:
        """Each call made ready, or the `ScoregateError` that stands for it."""

    @abstractmethod
    def start(self, prepared: Any, ticket: Ticket, context: Context) -> "asyncio.Future[Any]":
        """
        Begin one call; the future becomes its outcome, a `ScoregateError` among them.

        Cancelling the future drops what has not been done.  Raises `ScoregateError` as a refusal.
        """

    @abstractmethod
    def lift(self, work: "asyncio.Future[Any]") -> None:
        """Somebody urgent waits for *work*, which began in the bulk lane."""


class LocalBackend(Backend):
    """A model on a device of this process: its calls are queued and batched."""

    def __init__(self, resident: Resident, device: Device, cpu: Mapping[str, Executor]) -> None:
        self.name, self.info = resident.name, resident.model.info
        self._resident, self._device, self._cpu = resident, device, cpu
        self._entries: dict[asyncio.Future[Any], Entry] = {}

    @property
    def missing(self) -> str:
        """Empty while the device runs batches."""
        return "" if self._device.running else "not serving"

    def admit(self, lane: str, left_s: float) -> None:
        """Refuses what is full, and interactive work that would come too late."""
        queue = self._resident.queue
        queue.admit(lane)
        wait = self._device.wait_s(lane)
        done = (wait + queue.pace.typical) * CAUTION
        if lane == INTERACTIVE and wait and done > left_s:
            raise LaneFull(f"{self.name} would have answered in {done:.1f} s", retry_after_s=wait)

    async def prepare(self, calls: Sequence[Any], lane: str) -> list[Any]:
        """On one of the lane's CPU threads, ahead of the device."""
        model = self._resident.model
        return await asyncio.get_running_loop().run_in_executor(
            self._cpu[lane], prepare_all, model, self.name, calls
        )

    def start(self, prepared: Any, ticket: Ticket, context: Context) -> "asyncio.Future[Any]":
        """
        Queue the call; who is in the next batch is decided when the device is free.

        Admitted once more: others may have come before the device while this one was prepared.
        """
        self.admit(ticket.lane, ticket.deadline - asyncio.get_running_loop().time())
        entry = self._device.submit(self._resident, prepared, ticket)
        self._entries[entry.outcome] = entry
        entry.outcome.add_done_callback(self._entries.pop)
        return entry.outcome

    def lift(self, work: "asyncio.Future[Any]") -> None:
        """To the interactive lane, unless its batch has begun."""
        if entry := self._entries.get(work):
            self._device.lift(self._resident, entry)


def prepare_all(model: Model | RemoteModel, name: str, calls: Sequence[Any]) -> list[Any]:
    """Each call prepared, or why it can't be."""
    return [prepare_one(model, name, call) for call in calls]


def prepare_one(model: Model | RemoteModel, name: str, call: Any) -> Any:
    """One call prepared, or why it can't be."""
    try:
        return model.prepare(call)
    except ModelError as exc:
        return CallRefused(str(exc))
    except Exception as exc:
        fault = ModelFault(f"the model {name} failed to prepare this call")
        fault.__cause__ = exc
        return fault
