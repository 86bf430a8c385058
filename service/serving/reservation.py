"""Reservations: work that was admitted and is not queued yet."""

from collections.abc import MutableMapping, Sequence


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
        self._release(min(self._part, self._left))

    def close(self) -> None:
        """Release the rest when the request ends."""
        self._release(self._left)

    def _release(self, cost: float) -> None:
        self._left -= cost
        self._reserved[self._lane] -= cost


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
