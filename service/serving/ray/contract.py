"""The contract between gateways and the replicas of a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from models.core.calls import Call
from models.core.contract import ModelInfo
from service.serving.job import Result
from service.serving.ray.work import Work


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that is sent to a replica, with its lane and the seconds to its deadline."""

    call: Call
    lane: str
    left_s: float


@dataclass(frozen=True, slots=True)
class Described:
    """
    A replica and its model.

    Attributes:
        cost, seconds: tokens and duration of the model's example call.
    """

    id: str
    info: ModelInfo
    cost: int
    seconds: float

    @property
    def device(self) -> str:
        """The label of its series."""
        return f"ray:{self.id}"

    @property
    def model(self) -> str:
        """The identity of its model as a string."""
        return " ".join(self.info.identity)


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of each call of a group, and what the replica ran since its last answer."""

    results: list[Result]
    work: Work


class Lost(Exception):
    """A replica ended while it worked on a group, or Ray could not reach it."""


class Deployment(Protocol):
    """The replicas of one model."""

    async def describe(self, replica: str) -> Described:
        """Return the description of *replica*.  Raises `Lost`."""
        ...

    async def ask(self, replica: str, group: str, model: str, calls: Sequence[Sent]) -> Answer | None:
        """Return the result of `Replica.ask`.  Raises `Lost`."""
        ...

    async def promote(self, replica: str, group: str) -> None:
        """Make a group interactive, unless it has ended."""
        ...

    def listen(self, listener: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call *listener* with the running replicas, now and after each change, on any thread."""
        ...
