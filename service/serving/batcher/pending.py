"""Pending calls: they are being prepared, so an idle device may wait for them (ADR 0009)."""

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass

from service.core.lanes import LANES


@dataclass(eq=False, slots=True)
class Group:
    """A number of calls that are prepared together, and the lane that they will join."""

    lane: str
    calls: int


class PendingCalls:
    """
    Groups of calls that will join one queue.

    Attributes:
        latest: when a group was last ready, or the first one was begun; in seconds.
        between_s: running mean of the seconds between two calls that are ready.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self._groups: set[Group] = set()
        self._count = dict.fromkeys(LANES, 0)  # of calls
        self.between_s = 0.0

    @property
    def groups(self) -> Set[Group]:
        """The groups that are being prepared now."""
        return frozenset(self._groups)

    @property
    def under_way(self) -> int:
        """Number of groups that are being prepared."""
        return len(self._groups)

    @property
    def takes_s(self) -> float:
        """Predicted seconds until all of them are ready."""
        return sum(self._count.values()) * self.between_s

    def calls(self, lane: str) -> int:
        """Return the number of calls that will join *lane*."""
        return self._count[lane]

    @contextmanager
    def expecting(self, lane: str, calls: int, clock: Callable[[], float]) -> Iterator[None]:
        """Count a group while the context is open."""
        group = self.begin(lane, calls, clock())
        try:
            yield
        finally:
            self.end(group, clock())

    def begin(self, lane: str, calls: int, now: float) -> Group:
        """Add a group."""
        if not self._groups:
            self.latest = now
        group = Group(lane, calls)
        self._groups.add(group)
        self._count[lane] += calls
        return group

    def end(self, group: Group, now: float) -> None:
        """Remove a group, which is ready or cancelled."""
        self._groups.remove(group)
        self._count[group.lane] -= group.calls
        between_s = (now - self.latest) / group.calls
        self.between_s += (between_s - self.between_s) * (0.2 if self.between_s else 1.0)
        self.latest = now

    def coming(self, known: Set[Group], lanes: Set[str]) -> int:
        """Return the number of calls of *known* for *lanes* that are still being prepared."""
        return sum(group.calls for group in known & self._groups if group.lane in lanes)
