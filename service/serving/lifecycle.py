"""Models that come and go, by an operator's request, while others serve."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from models.core.messages import in_short
from service.core.concurrency.tasks import Tasks
from service.core.errors import Conflict, Invalid, ModelFault, NotFound, NotReady, ScoregateError
from service.core.retry_after import Shortage, expected_wait_s
from service.core.settings import NotYet
from service.observability.instruments import Instruments
from service.serving.backends.contract import LOADED_STATE, State
from service.serving.batcher.device import is_out_of_memory
from service.serving.handle import Handle
from service.serving.runtime import Runtime

log = logging.getLogger("scoregate.models")
Action = Literal["load", "offload", "unload"]


@dataclass(frozen=True, slots=True)
class Change:
    """
    The result of a change.

    Attributes:
        state: of the model now.
        device_bytes_before, device_bytes_after: its memory on its devices; None if another server holds it.
    """

    name: str
    state: State
    device_bytes_before: int | None
    device_bytes_after: int | None


class Lifecycle:
    """
    Loads, offloads and unloads models, each model by one change at a time, while no request uses it.

    Args:
        check: called with a model that was loaded, before the change ends.
    """

    def __init__(
        self,
        runtime: Runtime,
        instruments: Instruments,
        check: Callable[[Handle], Awaitable[object]] | None = None,
    ) -> None:
        self._runtime, self._instruments, self._check = runtime, instruments, check
        self._under_way: dict[str, str] = {}
        self._changes: dict[str, asyncio.Task[Change]] = {}  # the last one of each model
        self._tasks = Tasks()

    async def aclose(self) -> None:
        """Stop what is under way."""
        await self._tasks.cancel()

    async def change(self, name: str, action: Action, revision: str = "") -> Change:
        """
        Change the model *name*; nothing happens if it is in that state already.

        Requests under way are finished first.  The change goes on if its caller disconnects.

        Args:
            revision: to load; empty for the model's own.

        Raises:
            NotFound: there is no such model.
            Conflict: another change of the model is under way.
            Invalid: this model cannot be changed so, or the revision cannot be loaded.
            ModelFault: the example fails, or has other numbers than at the first start of the revision.
            NotReady: the memory does not suffice now, or the hub cannot be reached.
        """
        handle = self._runtime.handles.get(name)
        if handle is None:
            raise NotFound(f"there is no model {name} here; there are {', '.join(self._runtime.handles)}")
        # Faults are raised before the presence changes, which rejects requests.
        wanted = "revision" if revision else action
        if wanted != "load" and wanted not in handle.backend.changes:
            raise Invalid(f"{name}: a model of this kind cannot be taken away and brought back: no {wanted}")
        if before := self._under_way.get(name):
            raise Conflict(f"models.{name}: {before} is under way")
        return await asyncio.shield(self._begin(handle, action, revision))

    async def load_awaited(self, handle: Handle) -> None:
        """
        Load a model that waits for its first need; all requests that need it wait for one load.

        The load goes on if its caller disconnects.  One that failed is tried again for the next request.
        Raises as `change`.
        """
        while handle.backend.presence.awaited:
            if handle.name not in self._under_way:
                self._begin(handle, "load")
            await asyncio.shield(self._changes[handle.name])

    def _begin(self, handle: Handle, action: Action, revision: str = "") -> asyncio.Task[Change]:
        self._under_way[handle.name] = action
        task = self._tasks.start(self._work(handle, action, revision))
        self._changes[handle.name] = task
        return task

    async def _work(self, handle: Handle, action: Action, revision: str) -> Change:
        try:
            return await self._change(handle, action, revision)
        except Exception as exc:
            if isinstance(exc, ScoregateError):
                raise
            detail = str(exc) if isinstance(exc, NotYet) else f"models.{handle.name}: {in_short(exc)}"
            if isinstance(exc, NotYet) or is_out_of_memory(exc):
                raise NotReady(
                    f"too little free memory: {detail}", retry_after_s=expected_wait_s(Shortage.MODEL)
                ) from exc
            log.error("model not changed", extra={"model": handle.name}, exc_info=exc)
            raise ModelFault(detail) from exc
        finally:
            del self._under_way[handle.name]

    async def _change(self, handle: Handle, action: Action, revision: str) -> Change:
        backend, before = handle.backend, handle.backend.device_bytes
        try:
            if action == "load":
                await self._load(handle, revision)
                if self._check:
                    await self._check(handle)
                backend.presence.awaited = False
            else:
                await self._take_away(handle, action)
        finally:
            here = backend.presence.state == LOADED_STATE and not backend.missing
            self._instruments.model_ready.labels(handle.name).set(here)
        return Change(handle.name, backend.presence.state, before, backend.device_bytes)

    async def _take_away(self, handle: Handle, action: Literal["offload", "unload"]) -> None:
        backend, before = handle.backend, handle.backend.presence.state
        if before == "unloaded" or (before == "offloaded" and action == "offload"):
            return
        try:
            if before == LOADED_STATE:
                backend.presence.change("leaving")
                await handle.idle()
            await (backend.offload() if action == "offload" else backend.unload())
        except BaseException:
            if backend.presence.state == "leaving":  # a model that is leaving could not be brought back
                backend.presence.change(before)
            raise
        backend.presence.change("offloaded" if action == "offload" else "unloaded")

    async def _load(self, handle: Handle, revision: str) -> None:
        backend, before = handle.backend, handle.backend.presence.state
        if before == LOADED_STATE and revision in ("", backend.info.files):
            return
        if revision:
            await backend.check(revision)
        if before == LOADED_STATE:  # this revision waits in the host's memory while another one is loaded
            await self._take_away(handle, "offload")
        away = backend.presence.state
        backend.presence.change("loading")
        try:
            await backend.load(revision)
        except BaseException as exc:
            if backend.presence.state == "loading":
                backend.presence.change(away)
            if before == LOADED_STATE and isinstance(exc, Exception):
                await self._bring_back(handle)
            raise
        backend.presence.change(LOADED_STATE)

    async def _bring_back(self, handle: Handle) -> None:
        """Load the revision that was taken away for one that failed."""
        try:
            await self._load(handle, "")
        except Exception:  # it is away now, and an operator can load it
            log.error("model not brought back", extra={"model": handle.name}, exc_info=True)
