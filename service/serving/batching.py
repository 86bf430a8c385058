"""
What waits for a model, and which of it forms the next batch.

Nothing here waits or runs: `Queue` holds calls, `take_batch` decides.  There is no timer.  Calls of
all requests pile up while the device is busy, and the pile is the next batch (see ADR 0001).
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from models.base import Prepared
from service.errors import LaneFull


@dataclass(eq=False, slots=True)
class Entry:
    """One call in a queue; *due* orders the lanes, *arrived* tells how long it waited."""

    prepared: Prepared
    lane: str
    arrived: float
    due: float
    outcome: "asyncio.Future[object]"
    waiting: bool = True
    waited: float = 0.0
    ran: float = 0.0

    def answer(self, outcome: object) -> None:
        """Give the caller its outcome, unless the caller has gone."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


def take_batch(lanes: Mapping[str, deque[Entry]], *, max_items: int, max_cost: int) -> list[Entry]:
    """
    Take the next batch off the lanes, earliest *due* first.

    Entries whose caller has gone are dropped.  The first live entry is always taken, however costly,
    so that no call can block a queue for good.
    """
    batch: list[Entry] = []
    cost = 0
    while len(batch) < max_items:
        for lane in lanes.values():
            drop_gone(lane)
        heads = [lane for lane in lanes.values() if lane]
        if not heads:
            break
        lane = min(heads, key=lambda lane: lane[0].due)
        cost += lane[0].prepared.cost
        if batch and cost > max_cost:
            break
        batch.append(lane.popleft())
    return batch


class Queue:
    """
    The calls that wait for one model, bounded by cost in each lane.

    An interactive call overtakes bulk calls, but none that has waited longer than *bulk_waits_s*:
    bulk is due that much later than it arrived, so ageing needs no rule of its own.
    """

    def __init__(self, *, max_items: int, max_cost: int, max_waiting: int, bulk_waits_s: float) -> None:
        self._limits = {"max_items": max_items, "max_cost": max_cost}
        self._max_waiting = max_waiting
        self._late = {"interactive": 0.0, "bulk": bulk_waits_s}
        self._lanes: dict[str, deque[Entry]] = {lane: deque() for lane in self._late}
        # Of live entries, kept up to date as they come, leave and are taken: no submit walks a lane.
        self._count = dict.fromkeys(self._late, 0)
        self._cost = dict.fromkeys(self._late, 0)
        self._drained = 0.0  # tokens per second, a running mean

    def __repr__(self) -> str:
        return f"<Queue {self._count}>"

    def depth(self, lane: str) -> int:
        """How many live calls wait in *lane*."""
        return self._count[lane]

    def head(self) -> Entry | None:
        """The entry that the next batch starts with."""
        for lane in self._lanes.values():
            drop_gone(lane)
        heads = [lane[0] for lane in self._lanes.values() if lane]
        return min(heads, key=lambda entry: entry.due, default=None)

    def admit(self, lane: str) -> None:
        """
        Refuse where the lane is full.

        Raises:
            LaneFull: with the time in which the lane drains at the measured rate.
        """
        cost = self._cost[lane]
        if cost >= self._max_waiting:
            wait = cost / self._drained if self._drained else 1.0
            raise LaneFull(f"the {lane} lane holds {cost} tokens", retry_after_s=wait)

    def put(self, prepared: Prepared, lane: str, now: float) -> Entry:
        """Queue one call that arrives at *now*.  Raises `LaneFull`."""
        self.admit(lane)
        outcome = asyncio.get_running_loop().create_future()
        entry = Entry(prepared, lane, now, now + self._late[lane], outcome)
        self._lanes[lane].append(entry)
        self._add(entry, 1)
        outcome.add_done_callback(lambda _: self._left(entry))
        return entry

    def take(self) -> list[Entry]:
        """The next batch; empty when nobody waits."""
        batch = take_batch(self._lanes, **self._limits)
        for entry in batch:
            self._left(entry)
        return batch

    def note_drained(self, cost: int, seconds: float) -> None:
        """Learn the drain rate from a finished batch."""
        if seconds > 0:
            rate = cost / seconds
            self._drained += (rate - self._drained) * (0.2 if self._drained else 1.0)

    def _left(self, entry: Entry) -> None:
        """An entry was taken, or its caller has gone; whichever comes first counts."""
        if entry.waiting:
            entry.waiting = False
            self._add(entry, -1)

    def _add(self, entry: Entry, sign: int) -> None:
        self._count[entry.lane] += sign
        self._cost[entry.lane] += sign * entry.prepared.cost


def drop_gone(lane: deque[Entry]) -> None:
    """Drop entries at the front whose caller has gone."""
    while lane and lane[0].outcome.done():
        lane.popleft()
