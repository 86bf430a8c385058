"""
What stands behind a handle: prepares calls, starts them, and answers them in its own time.

A backend hands out one `StartedCall` for each call it starts.  Whoever holds it can promote, extend or
cancel the call; the `Result` comes back with its own timings.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from models.calls import Call
from models.contract import ModelInfo, Prepared
from models.outcomes import Outcome
from service.context import Context
from service.errors import LaneFull, Overloaded, ScoregateError
from service.lanes import INTERACTIVE

CAUTION = 1.15  # predicted times are multiplied by it: what comes too late after all was work for nothing


@dataclass(frozen=True, slots=True)
class Outlook:
    """
    What a new call in a lane would meet.

    Attributes:
        full: why the lane takes no more, as a sentence; empty where it takes more.
        wait_s: predicted seconds until everything before the call has been done.
        run_s: seconds that calls lately took from then on.
    """

    full: str
    wait_s: float
    run_s: float


@dataclass(frozen=True, slots=True)
class Result:
    """
    What came of one call.

    Attributes:
        outcome: the model's `Outcome`, or the `ScoregateError` that takes its place.
        waited_s: seconds from joining the queue to the start of the batch; 0 where no batch took the call.
        ran_s: seconds that its batch took; 0 where no batch finished.
    """

    outcome: Outcome | ScoregateError
    waited_s: float = 0.0
    ran_s: float = 0.0


class StartedCall(ABC):
    """
    A call that a backend has started and not necessarily finished.

    Attributes:
        result: becomes the call's `Result`; cancelled where the call was.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def result(self) -> "asyncio.Future[Result]": ...

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether its batch, or its request to the server, has begun; stays true afterwards."""

    @abstractmethod
    def promote(self) -> None:
        """Move it to the interactive lane, as far as it has not begun yet."""

    @abstractmethod
    def extend(self, deadline: float) -> None:
        """Let it be answered until *deadline* instead (event loop's clock)."""

    @abstractmethod
    def cancel(self) -> None:
        """Drop what has not been done; nobody waits for the result any more."""


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
        """Why the model cannot be asked now; empty where it can."""

    @abstractmethod
    def outlook(self, lane: str) -> Outlook:
        """What a new call in *lane* would meet."""

    def admit(self, lane: str, left_s: float) -> None:
        """
        Refuse a call whose lane is full, and an interactive one that would come too late.

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
        done_s = (ahead.wait_s + ahead.run_s) * CAUTION
        if lane == INTERACTIVE and ahead.wait_s and done_s > left_s:
            raise LaneFull(f"{self.name} would have answered in {done_s:.1f} s", retry_after_s=ahead.wait_s)

    @abstractmethod
    async def prepare(self, calls: Sequence[Call], lane: str) -> list[Prepared | ScoregateError]:
        """Each call made ready, or the error that stands for it; same length, same order."""

    @abstractmethod
    def start(self, prepared: Prepared, lane: str, deadline: float, context: Context) -> StartedCall:
        """
        Start one call.

        Args:
            lane, deadline: the most urgent and the latest of those who wait for it.
            context: whose request it is, for names and traces only.

        Raises:
            ScoregateError: the call is refused.
        """
