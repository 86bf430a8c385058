"""Calls that are being prepared: they will be queued, and an idle device may wait for them (see ADR 0009)."""

from collections.abc import Set
from dataclasses import dataclass
from math import inf


@dataclass(eq=False, slots=True)
class Group:
    """Calls that are prepared together."""

    lane: str
    calls: int


class Coming:
    """
    Groups on their way to one queue, and how soon calls were ready lately.

    Attributes:
        latest: when a group was last ready, or the first of those under way was begun.
    """

    def __init__(self) -> None:
        self.latest = 0.0
        self._groups: set[Group] = set()
        self._between = 0.0  # seconds from one call that was ready to the next, a running mean

    @property
    def groups(self) -> Set[Group]:
        """Those under way now."""
        return frozenset(self._groups)

    def calls(self, lane: str) -> int:
        """How many calls are on their way to *lane*."""
        return sum(group.calls for group in self._groups if group.lane == lane)

    def begun(self, lane: str, calls: int, now: float) -> Group:
        """A group is being prepared from *now* on."""
        if not self._groups:
            self.latest = now
        group = Group(lane, calls)
        self._groups.add(group)
        return group

    def ended(self, group: Group, now: float) -> None:
        """It is ready, or was given up."""
        self._groups.remove(group)
        between = (now - self.latest) / group.calls
        self._between += (between - self._between) * (0.2 if self._between else 1.0)
        self.latest = now

    def ready_in(self, known: Set[Group], lanes: Set[str]) -> float:
        """Seconds until those of *known* that go to *lanes* will be ready; inf where there are none."""
        calls = sum(group.calls for group in known & self._groups if group.lane in lanes)
        return calls * self._between if calls else inf
