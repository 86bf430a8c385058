"""What a gateway holds of calls and requests whose replicas are elsewhere."""

import asyncio
from collections.abc import Callable, Sequence

from service.serving.backends.contract import Result, StartedCall
from service.serving.ray.place import GroupedCall
from service.serving.reservation import Reservation


class StartedGroupedCall(StartedCall):
    """A call that waits for a replica, or is on its way to one."""

    __slots__ = ("_call", "_promote")

    def __init__(self, call: GroupedCall, promote: Callable[[GroupedCall], None]) -> None:
        self._call, self._promote = call, promote

    @property
    def result(self) -> "asyncio.Future[Result]":
        """Of the call."""
        return self._call.result

    @property
    def running(self) -> bool:
        """Whether its group has been sent."""
        return self._call.running

    def promote(self) -> None:
        """To the interactive lane, here or in the replica's queue."""
        self._promote(self._call)

    def extend(self, deadline: float) -> None:
        """It may be sent until *deadline*; what has been sent keeps its own."""
        self._call.deadline = deadline

    def cancel(self) -> None:
        """It leaves its queue.  A group stops with the last of its calls."""
        self._call.result.cancel()


class Reservations(Reservation):
    """What a request has reserved with several replicas."""

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
