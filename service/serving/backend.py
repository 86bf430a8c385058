"""What stands behind a handle: prepares calls, and answers them in its own time."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from models.base import Model, ModelError, ModelInfo, RemoteModel
from service.context import Context
from service.errors import CallRefused, LaneFull, ModelFault, Overloaded, ScoregateError
from service.serving.batching import Entry, Ticket
from service.serving.device import Device, Resident
from service.telemetry import INTERACTIVE

CAUTION = 1.15  # what comes too late after all was work for nothing


@dataclass(frozen=True, slots=True)
class Outlook:
    """
    What a new call in a lane would meet.

    Attributes:
        full: that the lane takes no more, in words; empty where it does.
        wait_s: until what is before it has been done.
        took_s: what a call has lately taken from then on.
    """

    full: str
    wait_s: float
    took_s: float


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
    def outlook(self, lane: str) -> Outlook:
        """What a new call in *lane* would meet."""

    def admit(self, lane: str, left_s: float) -> None:
        """
        Refuse what is full, and interactive work that would come too late.

        Args:
            left_s: seconds to the deadline.

        Raises:
            LaneFull, Overloaded: an interactive or a bulk call; with the seconds in which the lane
                will have drained.
        """
        ahead = self.outlook(lane)
        if ahead.full:
            kind = LaneFull if lane == INTERACTIVE else Overloaded
            raise kind(ahead.full, retry_after_s=ahead.wait_s)
        done = (ahead.wait_s + ahead.took_s) * CAUTION
        if lane == INTERACTIVE and ahead.wait_s and done > left_s:
            raise LaneFull(f"{self.name} would have answered in {done:.1f} s", retry_after_s=ahead.wait_s)

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

    def outlook(self, lane: str) -> Outlook:
        """By the measured pace of the models on the device."""
        queue = self._resident.queue
        full = f"the {lane} lane of {self.name} holds all that it may" if queue.holds_all(lane) else ""
        return Outlook(full, self._device.wait_s(lane), queue.pace.typical)

    async def prepare(self, calls: Sequence[Any], lane: str) -> list[Any]:
        """On one of the lane's CPU threads, ahead of the device."""
        resident, loop = self._resident, asyncio.get_running_loop()
        with self._device.expecting(resident, lane, len(calls)):
            return await loop.run_in_executor(self._cpu[lane], prepare_all, resident.model, self.name, calls)

    def start(self, prepared: Any, ticket: Ticket, context: Context) -> "asyncio.Future[Any]":
        """Queue the call; who is in the next batch is decided when the device is free."""
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
    except ScoregateError as exc:  # the image is broken
        return exc
    except ModelError as exc:
        return CallRefused(str(exc))
    except Exception as exc:
        fault = ModelFault(f"the model {name} failed to prepare this call")
        fault.__cause__ = exc
        return fault
