"""
Pending calls: they are being prepared and will be queued soon, so an idle device may wait for them.

See ADR 0009.
"""

from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass

from service.core.lanes import LANES


@dataclass(eq=False, slots=True)
class Group:
    """So many *calls* that are prepared together, and the lane that they will join."""

    lane: str
    calls: int


class PendingCalls:
    """
    Groups on their way to one queue, and how soon calls were ready lately.

    Attributes:
        latest: when a group was last ready, or the first of those under way was begun; in seconds.
        between_s: seconds from one call that was ready to the next, a running mean.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self._groups: set[Group] = set()
        self._count = dict.fromkeys(LANES, 0)  # of calls
        self.between_s = 0.0

    @property
    def groups(self) -> Set[Group]:
        """Those under way now."""
        return frozenset(self._groups)

    @property
    def under_way(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    @property
    def takes_s(self) -> float:
        """Seconds until all of them will be ready."""
        return sum(self._count.values()) * self.between_s

    def calls(self, lane: str) -> int:
        """How many calls are on their way to *lane*."""
        return self._count[lane]

    @contextmanager
    def expecting(self, lane: str, calls: int, clock: Callable[[], float]) -> Iterator[None]:
        """While this is open, so many calls are on their way to *lane*."""
        group = self.begin(lane, calls, clock())
        try:
            yield
        finally:
            self.end(group, clock())

    def begin(self, lane: str, calls: int, now: float) -> Group:
        """So many calls are being prepared from *now* on."""
        if not self._groups:
            self.latest = now
        group = Group(lane, calls)
        self._groups.add(group)
        self._count[lane] += calls
        return group

    def end(self, group: Group, now: float) -> None:
        """*group* is ready, or was given up."""
        self._groups.remove(group)
        self._count[group.lane] -= group.calls
        between_s = (now - self.latest) / group.calls
        self.between_s += (between_s - self.between_s) * (0.2 if self.between_s else 1.0)
        self.latest = now

    def coming(self, known: Set[Group], lanes: Set[str]) -> int:
        """How many calls of *known* that go to *lanes* are still being prepared."""
        return sum(group.calls for group in known & self._groups if group.lane in lanes)
