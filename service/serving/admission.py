"""Admission: the demand of a request, what it reserves, and how many requests may wait for a full lane."""

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from service.core.errors import Overloaded
from service.core.retry_after import Shortage, expected_wait_s

MAX_REQUESTS = 1024  # verl-omni sends up to 800 in parallel
MAX_WAITING_ITEMS = 16 * 1024
RETRIED_ITEMS_PER_S = 500  # items of all requests that are retried, whatever the state of their models


@dataclass(frozen=True, slots=True)
class Demand:
    """A number of *calls*, and of *characters* of text in all of them."""

    calls: int = 1
    characters: int = 0

    def __add__(self, other: "Demand") -> "Demand":
        """Add calls and characters."""
        return Demand(self.calls + other.calls, self.characters + other.characters)

    def __mul__(self, times: int) -> "Demand":
        """Multiply calls and characters."""
        return Demand(self.calls * times, self.characters * times)


@dataclass(frozen=True, slots=True)
class AdmissionForecast:
    """
    The expected treatment of a new request in a lane.

    Attributes:
        full: the lane takes no more.
        wait_s: predicted seconds until all earlier work is done.
        run_s: seconds that it should take from then on.
        drain_s: predicted seconds until all admitted work is done.
        too_much: it exceeds the limit for one request.
    """

    full: bool
    wait_s: float
    run_s: float
    drain_s: float
    too_much: bool = False


@dataclass(frozen=True, slots=True, order=True)
class WorkEstimate:
    """The size of a demand: seconds of the model's time, and full batches."""

    seconds: float
    batches: float


class Reservation:
    """
    Tokens that count against a lane from the admission of a request until its calls are prepared.

    A large request queues its calls in parts, so the queues alone would not show what was admitted.

    Args:
        costs: each queue's tokens by lane, of all requests, and those of this request.
        parts: of the request, which begin one by one, each with an equal share.
    """

    def __init__(
        self, costs: Sequence[tuple[MutableMapping[str, float], float]], lane: str, parts: int
    ) -> None:
        self._lane, self._left = lane, parts
        self._shares = [(reserved, cost / parts) for reserved, cost in costs]
        for reserved, cost in costs:
            reserved[lane] += cost

    def begin_part(self) -> None:
        """Release one part, which the queues count from now on: its calls are being prepared."""
        if self._left:
            self._left -= 1
            for reserved, share in self._shares:
                reserved[self._lane] -= share

    def close(self) -> None:
        """Release the rest when the request ends."""
        while self._left:
            self.begin_part()


class WaitingRoom:
    """
    The limits of all requests that wait.

    Args:
        max_bytes: of their pictures.

    Attributes:
        items: of all requests that wait.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = self._requests = self.items = 0

    @contextmanager
    def place(self, size: int, items: int) -> Iterator["Place"]:
        """Yield the place of a request with *size* bytes of so many items; it is free again at the end."""
        place = Place(self, size, items)
        try:
            yield place
        finally:
            if place.taken:
                self._count(-size, -1, -items)

    def take(self, size: int, items: int) -> None:
        """Count a request that begins to wait.  Raises `Overloaded` if there is no room for it."""
        if (
            self._bytes + size > self._max_bytes
            or self._requests >= MAX_REQUESTS
            or self.items + items > MAX_WAITING_ITEMS
        ):
            raise Overloaded(
                "too many requests wait for their scores already",
                retry_after_s=expected_wait_s(Shortage.PLACES),
            )
        self._count(size, 1, items)

    def _count(self, size: int, requests: int, items: int) -> None:
        self._bytes += size
        self._requests += requests
        self.items += items


class Place:
    """The place of one request in the waiting room; it is taken only when the request has to wait."""

    def __init__(self, room: WaitingRoom, size: int, items: int) -> None:
        self._room, self._size, self._items = room, size, items
        self.taken = False

    def take(self) -> None:
        """Begin to wait.  Raises `Overloaded` if there is no room."""
        if not self.taken:
            self._room.take(self._size, self._items)
            self.taken = True

    @property
    def pause_s(self) -> float:
        """The seconds until a retry, so that the retries of all requests stay below `RETRIED_ITEMS_PER_S`."""
        return self._room.items / RETRIED_ITEMS_PER_S
