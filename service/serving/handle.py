"""A handle: how a metric asks one model."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from models.base import ModelError, ModelInfo
from service.context import Context
from service.errors import CallRefused, ModelFault, ScoregateError
from service.serving.batching import Entry
from service.serving.device import Device, Resident


class Handle(ABC):
    """
    One configured model.

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
    def admit(self, lane: str) -> None:
        """Raises `LaneFull` where a request should be refused before any work."""

    @abstractmethod
    async def ask(self, calls: Sequence[Any], context: Context) -> list[Any]:
        """
        Ask a group at once: one outcome per call, in order.

        An exception is an outcome (always a `ScoregateError`), so one failed call never cancels its
        siblings.  Cancelling the group drops what has not been begun.
        """


class LocalHandle(Handle):
    """A model on a device here: prepares calls on CPU threads, queues them, waits for the outcomes."""

    def __init__(self, resident: Resident, device: Device, cpu: Executor) -> None:
        self.name, self.info = resident.name, resident.model.info
        self._resident, self._device, self._cpu = resident, device, cpu

    @property
    def missing(self) -> str:
        """Empty while the device runs batches."""
        return "" if self._device.running else "not serving"

    def admit(self, lane: str) -> None:
        """Raises `LaneFull`."""
        self._resident.queue.admit(lane)

    async def ask(self, calls: Sequence[Any], context: Context) -> list[Any]:
        """One outcome per call, in order."""
        loop = asyncio.get_running_loop()
        ready = await loop.run_in_executor(self._cpu, self._prepare, calls)
        entries = [self._submit(made, context.lane) for made in ready]
        queued = [entry for entry in entries if isinstance(entry, Entry)]
        try:
            for entry in queued:
                await entry.outcome
        except asyncio.CancelledError:
            for entry in queued:
                entry.outcome.cancel()
            raise
        for entry in queued:
            context.spent("queue", entry.waited)
            context.spent("model", entry.ran)
        return [entry.outcome.result() if isinstance(entry, Entry) else entry for entry in entries]

    def _submit(self, made: Any, lane: str) -> Entry | ScoregateError:
        """Queue what was prepared; a refusal is this call's outcome, not its siblings'."""
        if isinstance(made, ScoregateError):
            return made
        try:
            return self._device.submit(self._resident, made, lane)
        except ScoregateError as refusal:
            return refusal

    def _prepare(self, calls: Sequence[Any]) -> list[Any]:
        return [self._prepared(call) for call in calls]

    def _prepared(self, call: Any) -> Any:
        try:
            return self._resident.model.prepare(call)
        except ModelError as exc:
            return CallRefused(str(exc))
        except Exception as exc:
            fault = ModelFault(f"the model {self.name} failed to prepare this call")
            fault.__cause__ = exc
            return fault
