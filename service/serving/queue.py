"""What waits for a model.  Nothing here waits or runs: a device asks for the next batch."""

import asyncio
from collections import deque
from math import inf

from models.base import Prepared
from service.serving.batching import Entry, Shares, Ticket, take_batch
from service.serving.coming import Coming
from service.serving.pace import Pace
from service.telemetry import BULK, INTERACTIVE, LANES

RECOVERY = 1.05  # how fast the limit that an out-of-memory set rises again, for each batch


class Queue:
    """
    The calls that wait for one model.

    Args:
        max_items, max_cost: of a batch.
        max_batch_s: how long a batch may take, by the model's pace.
        max_waiting: cost that may wait in one lane; who admits calls keeps to it.
        linger_s: how long a batch that is not full waits for more, from its first call's arrival.

    Attributes:
        pace: how fast batches are.
        coming: calls that are being prepared.
    """

    def __init__(
        self,
        *,
        max_items: int,
        max_cost: int,
        max_waiting: int,
        max_batch_s: float = inf,
        shares: Shares | None = None,
        linger_s: float = 0.0,
    ) -> None:
        self.pace, self.linger_s = Pace(), linger_s
        self.coming = Coming()
        self._max_items, self._max_cost, self._max_waiting = max_items, max_cost, max_waiting
        self._max_batch_s, self._shares = max_batch_s, shares or Shares()
        self._memory = float(max_cost)  # what fits, as far as is known
        self._credit = 0.0
        self._typical = 0.0  # tokens of a call, a running mean
        self._lanes: dict[str, deque[Entry]] = {lane: deque() for lane in LANES}
        # Of live entries, kept up to date as they come, leave and are taken: no submit walks a lane.
        self._count = dict.fromkeys(LANES, 0)
        self._cost = dict.fromkeys(LANES, 0)

    def __repr__(self) -> str:
        return f"<Queue {self._count}>"

    def depth(self, lane: str) -> int:
        """How many live calls wait in *lane*."""
        return self._count[lane]

    def holds_all(self, lane: str) -> bool:
        """Whether *lane* takes no more."""
        return self._cost[lane] >= self._max_waiting

    def drains(self, lane: str) -> float:
        """Seconds in which what waits in *lane*, or is on its way there, will have been done."""
        cost = self._cost[lane] + self.coming.calls(lane) * self._typical
        largest = max(self._typical, min(self._limit(), self._max_items * self._typical))
        return self.pace.drains(cost, largest)

    @property
    def waiting(self) -> str:
        """The most urgent lane that holds a live call; empty where none does."""
        return next((lane for lane in LANES if self._count[lane]), "")

    @property
    def full(self) -> bool:
        """Whether what waits is all that a batch can hold."""
        return sum(self._count.values()) >= self._max_items or sum(self._cost.values()) >= self._limit()

    def oldest(self) -> float:
        """When the first of the live calls arrived; only where one waits."""
        return min(entry.arrived for lane in self._lanes.values() for entry in lane if entry.booked)

    def put(self, prepared: Prepared, ticket: Ticket, now: float) -> Entry:
        """Queue one call that arrives at *now*."""
        self._typical += (prepared.cost - self._typical) * (0.1 if self._typical else 1.0)
        entry = Entry(prepared, ticket, now, asyncio.get_running_loop().create_future())
        self._lanes[ticket.lane].append(entry)
        self._book(entry, ticket.lane)
        entry.outcome.add_done_callback(lambda _: self._book(entry, ""))
        return entry

    def lift(self, entry: Entry) -> None:
        """Move a waiting bulk call to the interactive lane, to its place there by arrival."""
        if entry.booked == BULK:
            self._lanes[BULK].remove(entry)
            lane = self._lanes[INTERACTIVE]
            lane.insert(sum(other.arrived <= entry.arrived for other in lane), entry)
            self._book(entry, INTERACTIVE)

    def take(self, now: float) -> list[Entry]:
        """The next batch; empty when nobody waits."""
        batch, self._credit = take_batch(
            self._lanes,
            self._shares,
            self._credit,
            now,
            max_items=self._max_items,
            max_cost=self._limit(),
            fixed=self.pace.fixed / self.pace.slope if self.pace.slope else inf,
        )
        for entry in batch:
            self._book(entry, "")
        return batch

    def finished(self, cost: int, seconds: float, gap: float = 0.0) -> None:
        """Learn the pace from a batch; memory that held it may hold a little more."""
        self.pace.note(cost, seconds, gap)
        self._memory = min(self._max_cost, self._memory * RECOVERY)

    def ran_out_of_memory(self, cost: int) -> None:
        """Batches stay under half of that from now on, until memory has proved to hold more."""
        self._memory = max(1.0, min(self._memory, cost / 2))

    def _limit(self) -> float:
        """Tokens of the next batch.  Where one call alone takes too long, as many as take twice its time."""
        one = self.pace.fixed + self.pace.slope * self._typical
        seconds = self._max_batch_s if one <= self._max_batch_s else 2 * one
        return min(self._max_cost, self._memory, self.pace.within(seconds))

    def _book(self, entry: Entry, lane: str) -> None:
        """Count *entry* in *lane* and no longer where it was; "" once it was taken or its caller has gone."""
        for place, sign in ((entry.booked, -1), (lane, 1)):
            if place:
                self._count[place] += sign
                self._cost[place] += sign * entry.prepared.cost
        entry.booked = lane
