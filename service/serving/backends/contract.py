"""Backends: they prepare the calls of a model, start them and answer them."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from math import ceil
from typing import Any, Literal

from models.core.calls import Call
from models.core.contract import ModelError, ModelInfo, Prepared
from models.images.formats.contract import DecoderKilled
from models.images.image import ImageError
from service.core.errors import (
    CallRefused,
    ImageUndecodable,
    Invalid,
    ModelChanged,
    ModelFault,
    NotReady,
    ScoregateError,
)
from service.core.lanes import INTERACTIVE
from service.serving.admission import AdmissionForecast, Demand, Reservation, WorkEstimate
from service.serving.batcher.scheduler import HostedModel, Scheduler
from service.serving.job import Job

State = Literal["loaded", "offloaded", "unloaded", "leaving", "loading"]
LOADED_STATE: State = "loaded"


class Presence:
    """
    Whether calls of a model may begin.

    Requests that use the model when it begins to leave are finished first: all of their calls begin.  So is
    work that such a request shares with later ones.

    Args:
        waits: calls for a model that is away wait until their deadline; otherwise they are rejected.

    Attributes:
        state: "loaded" while they may.
        awaited: the model is loaded when a request first needs it, and has not been; its calls wait.
    """

    def __init__(self, name: str, *, waits: bool = False) -> None:
        self._name, self.waits, self.awaited = name, waits, False
        self.state: State = LOADED_STATE
        self._back, self._ended = asyncio.Event(), asyncio.Event()
        self._requests: Counter[object] = Counter()
        self._last: set[object] = set()  # requests and shared work that are finished before the model goes

    @property
    def reason(self) -> str:
        """The reason why calls are rejected; empty if they begin or wait."""
        begins = self.waits or self.awaited or self.state == LOADED_STATE
        return "" if begins else f"has been taken away ({self.state})"

    def change(self, state: State) -> None:
        """Set the state, and let waiting calls begin if the model is back."""
        self.state = state
        self._last = set(self._requests) if state == "leaving" else set()
        if state == LOADED_STATE:
            self._wake()

    def wait_for_need(self) -> None:
        """Set the state of a model that will be loaded when a request needs it."""
        self.state, self.awaited = "unloaded", True

    def _wake(self) -> None:
        """Let those who wait check again whether they may begin."""
        self._back.set()
        self._back = asyncio.Event()

    def share(self, request: object, work: object) -> None:
        """Finish *work*, which uses the model as a request does, before the model goes, if *request* is."""
        if request in self._last:
            self._last.add(work)
            self._wake()

    @contextmanager
    def used_by(self, request: object) -> Iterator[None]:
        """Count a part of *request*, or of shared work, while the context is open; parts may overlap."""
        self._requests[request] += 1
        try:
            yield
        finally:
            self._requests[request] -= 1
            if not self._requests[request]:
                del self._requests[request]
                self._last.discard(request)
                self._ended.set()
                self._ended.clear()

    async def unused(self) -> None:
        """Return when the requests that are finished first have ended."""
        while self._last:
            await self._ended.wait()

    async def wait(self, request: object = None) -> None:
        """Return when calls of *request* may begin.  Raises `NotReady` if they are rejected."""
        while self.state != LOADED_STATE and request not in self._last:
            if self.reason:
                raise NotReady(f"models.{self._name} {self.reason}")
            await self._back.wait()


class Backend(ABC):
    """
    A model, in this process or elsewhere.

    Attributes:
        name: under `models` in the settings.
        info: the model that is loaded or served.
        queues: in which its calls wait: that of this process, or of each replica, with its scheduler.
        clock: in seconds, of these.
        changes: those of "offload", "unload" and "revision" that can be made of it.
    """

    name: str
    info: ModelInfo
    queues: Sequence[tuple[Scheduler[Any], HostedModel[Any]]]
    clock: Callable[[], float]
    changes: Collection[str] = ()

    @cached_property
    def presence(self) -> Presence:
        """Whether calls may begin; True until an operator takes the model away."""
        return Presence(self.name)

    async def offload(self) -> None:
        """
        Move the weights from the device to the host's memory; no call is under way.

        After an error the model serves on.  If it cannot, the presence says that it is away.

        Raises:
            Invalid: this model cannot be moved.
        """
        raise Invalid(f"{self.name}: a model of this kind cannot be taken away and brought back")

    async def unload(self) -> None:
        """Drop the weights; no call is under way.  Raises as `offload`."""
        await Backend.offload(self)

    async def load(self, revision: str = "") -> None:
        """
        Bring the weights back, or load those of another *revision*, and check the example.

        No call is under way.  If another revision fails, the model is as it was before.

        Raises:
            Invalid: this model cannot be moved.
            ModelFault: the example has other numbers than at the start.
            NotReady: the memory does not suffice now.
        """
        await Backend.offload(self)

    async def check(self, revision: str) -> None:
        """
        Check that *revision* can be loaded: its files, its family and its memory.

        Raises:
            Invalid: it cannot.
            NotReady: the hub cannot be reached, or the memory does not suffice now.
        """
        await Backend.offload(self)

    @property
    def device_bytes(self) -> int | None:
        """Memory on its devices in bytes, see `models.core.memory`; None if that is not known here."""
        return None

    @property
    @abstractmethod
    def missing(self) -> str:
        """Why the model cannot be called now; empty if it can."""

    @property
    def failing(self) -> str:
        """Why recent calls of the model failed; empty if they worked."""
        return ""

    @property
    def devices(self) -> dict[str, str]:
        """Devices of this process that have a copy, each with its permanent fault; empty for none here."""
        return {}

    @cached_property
    def refuses(self) -> dict[str, str]:
        """Purposes that the model cannot serve, each with the reason."""
        return {}

    async def require(self, purpose: str, calls: Sequence[Call]) -> None:
        """Check that the model accepts any of *calls*; if not, it cannot serve *purpose*."""
        reasons = [await self.refusal(call) for call in calls]
        self.refuses.pop(purpose, None)
        if all(reasons):
            self.refuses[purpose] = reasons[0]

    async def refusal(self, call: Call) -> str:
        """Return why the model refuses *call* regardless of load; empty if it does not, or if unknown."""
        [made] = await self.prepare([call], INTERACTIVE)
        return made.detail if isinstance(made, CallRefused) else ""

    def forecast(self, lane: str, demand: Demand) -> AdmissionForecast:
        """Return the forecast for a request that all queues share."""
        queues, now = self.queues, self.clock()
        each = [scheduler.forecast(hosted, lane, demand, now, len(queues)) for scheduler, hosted in queues]
        return AdmissionForecast(
            full=all(one.full for one in each),
            wait_s=sum(one.wait_s for one in each) / len(each),
            run_s=max(one.run_s for one in each),
            drain_s=max(one.drain_s for one in each),
            too_much=all(one.too_much for one in each),
        )

    def estimate(self, demand: Demand) -> WorkEstimate:
        """Return the size of *demand*, a batch if no queue is there."""
        queues, unknown = self.queues, WorkEstimate(0.0, 1.0)
        each = [scheduler.estimate(hosted, demand, len(queues)) for scheduler, hosted in queues]
        return max(each, default=unknown)

    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """Count an admitted *demand* against the lane, until its *parts* have begun one by one."""
        queues = [hosted.queue for _, hosted in self.queues]
        costs = [(queue.reserved, queue.cost_of(demand) / len(queues)) for queue in queues]
        return Reservation(costs, lane, parts)

    @contextmanager
    def expecting(self, lane: str, calls: int) -> Iterator[None]:
        """Count *calls* as being prepared while the context is open, an equal part in each queue."""
        queues = self.queues
        with ExitStack() as stack:
            for _, hosted in queues:
                part = ceil(calls / len(queues))
                stack.enter_context(hosted.queue.pending.expecting(lane, part, self.clock))
            yield

    @abstractmethod
    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Return each call prepared, or its error, in order."""

    @abstractmethod
    def start(self, job: Job) -> None:
        """Queue a prepared job.  Raises `ScoregateError` if it is rejected."""

    def start_or_refuse(self, job: Job, made: Prepared | ScoregateError) -> None:
        """Queue a job, or end it with the error of its preparation or of `start`."""
        try:
            if isinstance(made, ScoregateError):
                raise made
            if job.model is not None and job.model.identity != self.info.identity:
                raise ModelChanged
            job.prepared = made
            self.start(job)
        except ScoregateError as refusal:
            job.refuse(refusal)


Prepare = Callable[[Call], Prepared]


def prepare_all(prepare: Prepare, name: str, calls: Sequence[Call]) -> list[Prepared | ScoregateError]:
    """Return each call prepared for the model *name*, or its error."""
    prepared: list[Prepared | ScoregateError] = []
    for call in calls:
        try:
            prepared.append(prepare(call))
        except ScoregateError as exc:
            prepared.append(exc)
        except ImageError as exc:
            prepared.append(not_decoded(exc))
        except ModelError as exc:
            prepared.append(CallRefused(str(exc)))
        except Exception as exc:
            prepared.append(not_prepared(name, exc))
    return prepared


def not_prepared(name: str, cause: Exception) -> ModelFault:
    """Return the error of a call of the model *name* whose preparation has a bug."""
    fault = ModelFault(f"the model {name} failed to prepare this call")
    fault.__cause__ = cause
    return fault


def not_decoded(error: ImageError) -> ScoregateError:
    """Return the service's error for a picture without pixels: temporary if its decoder was killed."""
    return (NotReady if isinstance(error, DecoderKilled) else ImageUndecodable)(str(error))
