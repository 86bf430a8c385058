"""A handle: how a metric asks one model."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from models.base import ModelError, ModelInfo
from service.context import Context
from service.errors import CallRefused, ModelFault, ScoregateError
from service.serving.batching import Entry
from service.serving.cache import OutcomeCache, through
from service.serving.device import Device, Resident


class Handle:
    """
    One configured model: prepares calls on CPU threads, queues them, waits for the outcomes.

    With a *cache*, calls that were answered before are answered from it.
    """

    def __init__(
        self, resident: Resident, device: Device, cpu: Executor, cache: OutcomeCache | None = None
    ) -> None:
        self._resident, self._device, self._cpu, self._cache = resident, device, cpu, cache

    @property
    def name(self) -> str:
        """The name under `models` in the settings."""
        return self._resident.name

    @property
    def info(self) -> ModelInfo:
        """What is loaded."""
        return self._resident.model.info

    def admit(self, lane: str) -> None:
        """Raises `LaneFull` where a request should be refused before any work."""
        self._resident.queue.admit(lane)

    async def ask(self, calls: Sequence[Any], context: Context) -> list[Any]:
        """
        Ask a group at once: one outcome per call, in order.

        An exception is an outcome (always a `ScoregateError`), so one failed call never cancels its
        siblings.  Cancelling the group drops what has not reached the device.
        """
        if self._cache is None or not self.info.revision:
            return await self._run(calls, context)
        model = (self.name, self.info.label, self.info.dtype)
        return await through(self._cache, model, calls, context, self._run)

    async def _run(self, calls: Sequence[Any], context: Context) -> list[Any]:
        """Prepare and queue the calls, and wait for all of them."""
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
