"""What a request has reserved with several replicas."""

from collections.abc import Sequence

from service.serving.reservation import Reservation


class Reservations(Reservation):
    """Reservations that begin and end together."""

    def __init__(self, each: Sequence[Reservation]) -> None:
        self._each = each

    def begin_part(self) -> None:
        """Of each."""
        for reservation in self._each:
            reservation.begin_part()

    def close(self) -> None:
        """All of them."""
        for reservation in self._each:
            reservation.close()
