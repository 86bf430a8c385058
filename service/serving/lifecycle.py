"""Models that come and go, by an operator's request, while others serve."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from models.core.reason import in_short
from service.core.concurrency.tasks import Tasks
from service.core.errors import Conflict, Invalid, NotFound, NotReady
from service.core.settings import NotYet
from service.observability.instruments import Instruments
from service.serving.batcher.execution_slot import is_out_of_memory
from service.serving.handle import Handle
from service.serving.presence import LOADED, RETRY_S, State
from service.serving.runtime import Runtime

Action = Literal["load", "offload", "unload", "swap"]

T = TypeVar("T")


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
    Loads, offloads, unloads and swaps models, each model by one change at a time.

    Attributes:
        before: called with a model's name before it is offloaded, unloaded or swapped.
    """

    def __init__(self, runtime: Runtime, instruments: Instruments) -> None:
        self._runtime, self._instruments = runtime, instruments
        self.before: list[Callable[[str], Awaitable[None]]] = []
        self._under_way: dict[str, str] = {}
        self._tasks = Tasks()

    async def aclose(self) -> None:
        """Stop what is under way."""
        await self._tasks.cancel()

    async def change(self, name: str, action: Action, revision: str = "") -> Change:
        """
        Change the model *name*; nothing happens if it is in that state already.

        Requests under way are finished first, before a swap their calls.

        Args:
            revision: of the swap.

        Raises:
            NotFound: there is no such model.
            Conflict: a swap of a model that is away; see also `exclusively`.
            Invalid: this model cannot be changed so, or the revision cannot be loaded.
            ModelFault: the model does not give the numbers of the first start; it stays away.
            NotReady: see `exclusively`.
        """
        handle = self._runtime.handles.get(name)
        if handle is None:
            raise NotFound(f"there is no model {name} here; there are {', '.join(self._runtime.handles)}")
        # Before the presence changes, which rejects requests.
        if action != "load" and action not in handle.backend.changes:
            raise Invalid(f"{name}: a model of this kind cannot be taken away and brought back: no {action}")
        return await self.exclusively(name, action, partial(self._change, handle, action, revision))

    async def exclusively(self, name: str, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """
        Return the result of *work*, a change of the model *name*, which goes on if its caller disconnects.

        Args:
            what: the word for it.

        Raises:
            Conflict: another change of the model is under way.
            NotReady: the memory does not suffice now.
        """
        if before := self._under_way.get(name):
            raise Conflict(f"models.{name}: {before} is under way")
        self._under_way[name] = what
        return await asyncio.shield(self._tasks.start(self._work(name, work)))

    async def _work(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        except Exception as exc:
            if isinstance(exc, NotYet) or is_out_of_memory(exc):
                detail = str(exc) if isinstance(exc, NotYet) else f"models.{name}: {in_short(exc)}"
                raise NotReady(f"too little free memory: {detail}", retry_after_s=RETRY_S) from exc
            raise
        finally:
            del self._under_way[name]

    async def _change(self, handle: Handle, action: Action, revision: str) -> Change:
        backend, before = handle.backend, handle.backend.device_bytes
        try:
            match action:
                case "load":
                    await self._load(handle)
                case "swap":
                    await self._swap(handle, revision)
                case "offload" | "unload":
                    await self._take_away(handle, action)
        finally:
            here = backend.presence.state == LOADED and not backend.missing
            self._instruments.model_ready.labels(handle.name).set(here)
        return Change(handle.name, backend.presence.state, before, backend.device_bytes)

    async def _take_away(self, handle: Handle, action: Literal["offload", "unload"]) -> None:
        backend, before = handle.backend, handle.backend.presence.state
        if before == "unloaded" or (before == "offloaded" and action == "offload"):
            return
        await self._prepare(handle)
        try:
            if before == LOADED:
                backend.presence.change("leaving")
                await handle.idle()
            await (backend.offload() if action == "offload" else backend.unload())
        except BaseException:
            if backend.presence.state == "leaving":  # else it could not be brought back
                backend.presence.change(before)
            raise
        backend.presence.change("offloaded" if action == "offload" else "unloaded")

    async def _load(self, handle: Handle) -> None:
        backend, before = handle.backend, handle.backend.presence.state
        if before == LOADED:
            return
        backend.presence.change("loading")
        try:
            await backend.load()
        except BaseException:
            if backend.presence.state == "loading":
                backend.presence.change(before)
            raise
        backend.presence.change(LOADED)

    async def _swap(self, handle: Handle, revision: str) -> None:
        backend = handle.backend
        check_loaded(handle)
        await self._prepare(handle)

        async def drain() -> None:
            backend.presence.change("swapping")
            await handle.idle()

        try:
            await backend.replace(revision, drain)
        finally:
            backend.presence.change(LOADED)

    async def _prepare(self, handle: Handle) -> None:
        for each in self.before:
            await each(handle.name)


def check_loaded(handle: Handle) -> None:
    """Raise `Conflict` if the model is away."""
    if (state := handle.backend.presence.state) != LOADED:
        raise Conflict(f"models.{handle.name} is {state}: load it first")
