"""
What stands behind a handle: prepares calls, starts them, and answers them in its own time.

A backend hands out one `StartedCall` for each call it starts.  Whoever holds it can promote, extend or
cancel the call; the `Result` comes back with its own timings.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from models.core.calls import Call
from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import CallResult
from service.core.concurrency.promise import Promise
from service.core.errors import CallRefused, LaneFull, Overloaded, ScoregateError, TooLarge
from service.core.lanes import INTERACTIVE
from service.serving.context import Context
from service.serving.demand import Demand
from service.serving.reservation import Reservation

CAUTION = 1.15  # predicted times are multiplied by it: what comes too late after all was work for nothing


@dataclass(frozen=True, slots=True)
class AdmissionForecast:
    """
    What a new call or request would meet in a lane.

    Attributes:
        full: the lane takes no more.
        wait_s: predicted seconds until everything before it has been done.
        run_s: seconds that it should take from then on.
        drain_s: predicted seconds until everything has been done that was admitted.
        batches: how many full ones it is.
        too_much: it asks for more than one request may.
    """

    full: bool
    wait_s: float
    run_s: float
    drain_s: float
    batches: float = 0.0
    too_much: bool = False


@dataclass(frozen=True, slots=True, order=True)
class WorkEstimate:
    """What a demand comes to: seconds that a model works on it, and full batches."""

    seconds: float
    batches: float


@dataclass(frozen=True, slots=True)
class Result:
    """
    What came of one call.

    Attributes:
        outcome: the model's `CallResult`, or the `ScoregateError` that takes its place.
        waited_s: seconds from joining the queue to the start of the batch; 0 where no batch took the call.
        ran_s: seconds that its batch took; 0 where no batch finished.
        batch: the traceparent of its batch's span; empty where that was not recorded.
    """

    outcome: CallResult | ScoregateError
    waited_s: float = 0.0
    ran_s: float = 0.0
    batch: str = ""


class StartedCall(ABC):
    """
    A call that a backend has started and not necessarily finished.

    Attributes:
        result: becomes the call's `Result`; cancelled where the call was.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def result(self) -> Promise[Result]: ...

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
        replacements: how many times another model took its place.
    """

    name: str
    info: ModelInfo
    replacements: int = 0

    @property
    @abstractmethod
    def missing(self) -> str:
        """Why the model cannot be asked now; empty where it can."""

    @property
    def failing(self) -> str:
        """Why calls of the model fail lately, though they are tried; empty where they work."""
        return ""

    @cached_property
    def refuses(self) -> dict[str, str]:
        """Purposes that the model is of no use for, each with the reason."""
        return {}

    async def require(self, purpose: str, calls: Sequence[Call]) -> None:
        """Learn whether the model takes any of *calls*; one that takes none is of no use for *purpose*."""
        reasons = [await self.refusal(call) for call in calls]
        self.refuses.pop(purpose, None)
        if all(reasons):
            self.refuses[purpose] = reasons[0]

    async def refusal(self, call: Call) -> str:
        """Why the model refuses *call*, whatever its load; empty where it takes it, or cannot say now."""
        [made] = await self.prepare([call], INTERACTIVE)
        return made.detail if isinstance(made, CallRefused) else ""

    @abstractmethod
    def outlook(self, lane: str, demand: Demand | None = None) -> AdmissionForecast:
        """What a request with that *demand* would meet in *lane*; without one, a call of one admitted."""

    @abstractmethod
    def extent(self, demand: Demand) -> WorkEstimate:
        """What *demand* comes to."""

    @abstractmethod
    def reserve(self, lane: str, demand: Demand, parts: int) -> Reservation:
        """Count what was admitted against the lane, until its *parts* have begun one by one."""

    def admit(self, lane: str, left_s: float, demand: Demand | None = None) -> None:
        """
        Refuse what a full lane has no room for, what would come too late, and what is too much at once.

        Interactive work that should end after its deadline is refused.  An idle model tries what fits
        into one batch in any case: its cost is known roughly, and nobody waits behind it for long.

        Args:
            left_s: seconds to the deadline.
            demand: of a request; without it one call is admitted, whose request was.

        Raises:
            LaneFull, Overloaded: interactive or bulk work; with the seconds in which the lane will have
                drained, where somebody is before it.
            TooLarge: no request may ask for so much.
        """
        ahead = self.outlook(lane, demand)
        if ahead.too_much:
            raise TooLarge(f"one request may not ask so much of {self.name}; send less at once")
        if ahead.full:
            kind = LaneFull if lane == INTERACTIVE else Overloaded
            detail = (
                f"{self.name}: {self.missing}" if self.missing else f"the {lane} lane of {self.name} is full"
            )
            raise kind(detail, retry_after_s=ahead.drain_s or None)
        done_s = (ahead.wait_s + ahead.run_s) * CAUTION
        tried = not ahead.wait_s and ahead.batches <= 1
        if lane == INTERACTIVE and done_s > left_s and not tried:
            left_s = max(0.0, left_s)
            detail = f"{self.name} would need {done_s:.1f} s, and {left_s:.1f} s are left"
            raise LaneFull(detail, retry_after_s=ahead.drain_s or None)

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
