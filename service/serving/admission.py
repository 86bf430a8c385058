"""Admission: the demand of a request, its forecast, and what it reserves."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass


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


class Reservation:
    """
    Tokens that count against a lane from the admission of a request until its calls are queued.

    A large request queues its calls in parts, so the queue alone would not show what was admitted.

    Args:
        reserved: tokens by lane, of all requests.
        parts: of the request, which begin one by one, each with an equal share.
    """

    def __init__(self, reserved: MutableMapping[str, float], lane: str, cost: float, parts: int) -> None:
        self._reserved, self._lane = reserved, lane
        self._left, self._part = cost, cost / parts
        reserved[lane] += cost

    def begin_part(self) -> None:
        """Release one part, which the queue counts from now on."""
        part = min(self._part, self._left)
        self._left -= part
        self._reserved[self._lane] -= part

    def close(self) -> None:
        """Release the rest when the request ends."""
        self._reserved[self._lane] -= self._left
        self._left = 0.0


class Reservations(Reservation):
    """Reservations of one request on several replicas."""

    def __init__(self, each: Sequence[Reservation]) -> None:
        self._each = each

    def begin_part(self) -> None:
        """Release one part of each."""
        for reservation in self._each:
            reservation.begin_part()

    def close(self) -> None:
        """Release the rest of each."""
        for reservation in self._each:
            reservation.close()
