"""What gateways and replicas say to each other, and how a gateway asks the replicas of a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from models.core.calls import Call
from models.core.contract import ModelInfo
from service.serving.contract import Result


@dataclass(frozen=True, slots=True)
class Sent:
    """A call on its way to a replica, its lane, and the seconds to its deadline."""

    call: Call
    lane: str
    left_s: float


@dataclass(frozen=True, slots=True)
class Described:
    """
    A replica.

    Attributes:
        cost, seconds: tokens of its model's example, and how long that took.
    """

    id: str
    info: ModelInfo
    cost: int
    seconds: float

    @property
    def model(self) -> str:
        """The identity of its model in one line."""
        return " ".join(self.info.identity)


class Lost(Exception):
    """A replica went away while it worked on a group, or Ray could not reach it."""


class Deployment(Protocol):
    """The replicas of one model."""

    async def describe(self, replica: str) -> Described:
        """What *replica* holds.  Raises `Lost`."""
        ...

    async def ask(self, replica: str, group: str, model: str, calls: Sequence[Sent]) -> list[Result] | None:
        """What `Replica.ask` says.  Raises `Lost`."""
        ...

    async def promote(self, replica: str, group: str) -> None:
        """Make a group interactive; nothing where it has ended."""
        ...

    def listen(self, listener: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Tell *listener* the replicas that run, now and when they change, on any thread."""
        ...
