"""The waiting room: requests that wait for a full lane, or for a model, instead of being refused."""

from collections.abc import Iterator
from contextlib import contextmanager

from service.core.errors import Overloaded

MAX_REQUESTS = 1024  # verl-omni sends up to 800 in parallel
MAX_ITEMS = 16 * 1024
AGAIN_PER_S = 500  # items of all requests that are retried, whatever the state of their models


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
            or self.items + items > MAX_ITEMS
        ):
            raise Overloaded("too many requests wait for their scores already", retry_after_s=5.0)
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
        """The seconds until a retry, so that the retries of all requests stay below `AGAIN_PER_S`."""
        return self._room.items / AGAIN_PER_S
