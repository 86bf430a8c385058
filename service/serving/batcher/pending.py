"""
Pending calls: they are being prepared and will be queued soon, so an idle device may wait for them.

See ADR 0009.
"""

from collections.abc import Set
from dataclasses import dataclass
from math import inf


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
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self._groups: set[Group] = set()
        self._between_s = 0.0  # from one call that was ready to the next, a running mean

    @property
    def groups(self) -> Set[Group]:
        """Those under way now."""
        return frozenset(self._groups)

    def calls(self, lane: str) -> int:
        """How many calls are on their way to *lane*."""
        return sum(group.calls for group in self._groups if group.lane == lane)

    def begin(self, lane: str, calls: int, now: float) -> Group:
        """So many calls are being prepared from *now* on."""
        if not self._groups:
            self.latest = now
        group = Group(lane, calls)
        self._groups.add(group)
        return group

    def end(self, group: Group, now: float) -> None:
        """*group* is ready, or was given up."""
        self._groups.remove(group)
        between_s = (now - self.latest) / group.calls
        self._between_s += (between_s - self._between_s) * (0.2 if self._between_s else 1.0)
        self.latest = now

    def ready_in_s(self, known: Set[Group], lanes: Set[str]) -> float:
        """Seconds until those of *known* that go to *lanes* will be ready; inf where all have ended."""
        calls = sum(group.calls for group in known & self._groups if group.lane in lanes)
        return calls * self._between_s if calls else inf
