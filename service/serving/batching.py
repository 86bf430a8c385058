"""
What waits for a model, and which of it forms the next batch.

Nothing here waits or runs: `Queue` holds calls, `take_batch` decides.  There is no timer.  Calls of
all requests pile up while the device is busy, and the pile is the next batch (see ADR 0001).
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import inf

from models.base import Prepared
from service.errors import DeadlineExceeded
from service.serving.pace import Pace
from service.telemetry import BULK, INTERACTIVE, LANES

RECOVERY = 1.05  # how fast the limit that an out-of-memory set rises again, for each batch


@dataclass(eq=False, slots=True)
class Ticket:
    """
    What a call in flight carries of those who wait for it.

    Attributes:
        lane: the most urgent of theirs.
        deadline: the latest of theirs, on the event loop's clock.
        begun: its batch has.
        waited, ran: seconds in the queue and in its batch, once known.
    """

    lane: str
    deadline: float = inf
    begun: bool = False
    waited: float = 0.0
    ran: float = 0.0


@dataclass(eq=False, slots=True)
class Entry:
    """One call in a queue, since *arrived*."""

    prepared: Prepared
    ticket: Ticket
    arrived: float
    outcome: "asyncio.Future[object]"
    booked: str = ""  # the lane that counts it, while it waits

    def answer(self, outcome: object) -> None:
        """Give the caller its outcome, unless the caller has gone."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)


@dataclass(eq=False, slots=True)
class Coming:
    """A group of calls that is being prepared."""

    lane: str
    calls: int


@dataclass(frozen=True, slots=True)
class Shares:
    """
    How lanes share a batch while calls of both wait.

    For each token of interactive calls, bulk calls are owed bulk/interactive tokens, and more the
    longer the first of them has waited (twice as much after *ageing_s*), at most one.
    """

    interactive: float = 9.0
    bulk: float = 1.0
    ageing_s: float = 10.0

    def owed(self, waited: float) -> float:
        """Tokens of bulk calls for each interactive one."""
        return min(1.0, self.bulk / self.interactive * (1 + waited / self.ageing_s))


def take_batch(
    lanes: Mapping[str, deque[Entry]],
    shares: Shares,
    credit: float,
    now: float,
    *,
    max_items: int,
    max_cost: float,
) -> tuple[list[Entry], float]:
    """
    Take the next batch off the lanes: interactive calls first, but for what bulk calls are owed.

    The first entry is always taken, however costly, so that no call can block a queue for good.

    Returns:
        The batch, and the *credit* in tokens that bulk calls have afterwards.
    """
    batch: list[Entry] = []
    cost = 0
    interactive, bulk = lanes[INTERACTIVE], lanes[BULK]
    while len(batch) < max_items:
        drop_gone(interactive, now)
        drop_gone(bulk, now)
        both = bool(interactive and bulk)
        lane = bulk if not interactive or (both and credit >= bulk[0].prepared.cost) else interactive
        if not lane or (batch and cost + lane[0].prepared.cost > max_cost):
            break
        size = lane[0].prepared.cost
        if both:
            credit += -size if lane is bulk else size * shares.owed(now - bulk[0].arrived)
        cost += size
        batch.append(lane.popleft())
    return batch, credit if bulk else 0.0


class Queue:
    """
    The calls that wait for one model.

    Args:
        max_items, max_cost: of a batch.
        max_batch_s: how long a batch may take, by the model's pace.
        max_waiting: cost that may wait in one lane; who admits calls keeps to it.
        linger_s: how long a batch that is not full waits for more, from its first call's arrival.

    Attributes:
        coming: calls that are being prepared.
        came: when one was last made ready, or the first of those in `coming` was begun.
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
        self.coming: set[Coming] = set()
        self.came = 0.0
        self._max_items, self._max_cost, self._max_waiting = max_items, max_cost, max_waiting
        self._max_batch_s, self._shares = max_batch_s, shares or Shares()
        self._memory = float(max_cost)  # what fits, as far as is known
        self._credit = 0.0
        # Running means: tokens of a call, and seconds from one call made ready to the next.
        self._typical = self._between = 0.0
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
        coming = sum(group.calls for group in self.coming if group.lane == lane)
        largest = max(self._typical, min(self._limit(), self._max_items * self._typical))
        return self.pace.drains(self._cost[lane] + coming * self._typical, largest)

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

    def expect(self, lane: str, calls: int, now: float) -> Coming:
        """So many calls are being prepared from *now* on."""
        if not self.coming:
            self.came = now
        coming = Coming(lane, calls)
        self.coming.add(coming)
        return coming

    def ready(self, coming: Coming, now: float) -> None:
        """They are no longer, since they are prepared or given up."""
        self.coming.remove(coming)
        self._between += ((now - self.came) / coming.calls - self._between) * (0.2 if self._between else 1.0)
        self.came = now

    def ready_in(self, known: Set[Coming]) -> float:
        """Seconds until those of *known* are ready that what waits may wait for; inf where there are none."""
        lanes = (self.waiting, INTERACTIVE)
        calls = sum(coming.calls for coming in known & self.coming if coming.lane in lanes)
        return calls * self._between if calls else inf

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


def drop_gone(lane: deque[Entry], now: float) -> None:
    """Drop entries at the front whose callers have gone, or whose time has passed."""
    while lane and (lane[0].outcome.done() or lane[0].ticket.deadline <= now):
        lane.popleft().answer(DeadlineExceeded(stage="queue"))
