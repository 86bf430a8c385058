"""
Which of the calls that wait for a model form the next batch.

There is no timer: calls of all requests pile up while the device is busy, and the pile is the next batch
(see ADR 0001).
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from models.base import Prepared
from service.errors import DeadlineExceeded
from service.telemetry import BULK, INTERACTIVE


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
    fixed: float = inf,
) -> tuple[list[Entry], float]:
    """
    Take the next batch off the lanes: interactive calls first, but for what bulk calls are owed.

    What interactive calls leave is bulk's as well, until the batch takes twice the time that they would
    by themselves.  The first entry is always taken, however costly, so that no call can block a queue
    for good.

    Args:
        fixed: the tokens that take as long as the part of a batch's time which is the same for any, a / b.

    Returns:
        The batch, and the *credit* in tokens that bulk calls have afterwards.
    """
    batch: list[Entry] = []
    cost = urgent = 0
    interactive, bulk = lanes[INTERACTIVE], lanes[BULK]
    while len(batch) < max_items:
        drop_gone(interactive, now)
        drop_gone(bulk, now)
        both = bool(interactive and bulk)
        lane = bulk if not interactive or (both and credit >= bulk[0].prepared.cost) else interactive
        if not lane:
            break
        size = lane[0].prepared.cost
        filling = lane is bulk and urgent and not both
        if batch and cost + size > (min(max_cost, 2 * urgent + fixed) if filling else max_cost):
            break
        urgent += size if lane is interactive else 0
        if both:
            credit += -size if lane is bulk else size * shares.owed(now - bulk[0].arrived)
        cost += size
        batch.append(lane.popleft())
    return batch, credit if bulk else 0.0


def drop_gone(lane: deque[Entry], now: float) -> None:
    """Drop entries at the front whose callers have gone, or whose time has passed."""
    while lane and (lane[0].outcome.done() or lane[0].ticket.deadline <= now):
        lane.popleft().answer(DeadlineExceeded(stage="queue"))
