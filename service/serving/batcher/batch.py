"""
Which of the calls that wait for a model form the next batch.

There is no timer: calls of all requests pile up while the device is busy, and the pile is the next batch
(see ADR 0001).
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from models.core.contract import Prepared
from models.core.outcomes import CallResult
from service.core.concurrency.promise import Promise
from service.core.errors import DeadlineExceeded, ScoregateError
from service.core.lanes import BULK, INTERACTIVE
from service.observability.tracing.span import NO_SPAN, Span
from service.serving.contract import Result

FILLED = 1.5  # the time of a batch that bulk calls fill up, over that of its interactive calls alone


@dataclass(eq=False, slots=True)
class QueuedCall:
    """
    One call in a queue.

    Attributes:
        arrived: when it joined the queue, in seconds.
        result: becomes its `Result`; done early where its caller has gone.
        deadline: on the event loop's clock; past it no batch takes the call.
        running: its batch has begun.
        waited_s: in the queue, once its batch has begun.
        counted_in: the lane that counts it while it waits; empty before and after.
        home: the queue that it joined last.
        span: of the first who asked.
        batch: the traceparent of its batch's span, where that is recorded.
    """

    prepared: Prepared
    lane: str
    arrived: float
    deadline: float = inf
    result: Promise[Result] = field(default_factory=Promise)
    running: bool = False
    waited_s: float = 0.0
    counted_in: str = ""
    home: Any = None
    span: Span = NO_SPAN
    batch: str = ""

    def begin(self, now: float) -> None:
        """Its batch begins."""
        self.running, self.waited_s = True, now - self.arrived

    def answer(self, outcome: CallResult | ScoregateError, ran_s: float = 0.0) -> None:
        """Give the caller its outcome, unless the caller has gone."""
        if not self.result.done():
            self.result.set_result(Result(outcome, self.waited_s, ran_s, self.batch))


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

    def owed(self, waited_s: float) -> float:
        """Tokens of bulk calls for each interactive one."""
        return min(1.0, self.bulk / self.interactive * (1 + waited_s / self.ageing_s))

    def weight(self, lane: str) -> float:
        """The share of *lane*."""
        return self.interactive if lane == INTERACTIVE else self.bulk


def take_batch(
    lanes: Mapping[str, deque[QueuedCall]],
    shares: Shares,
    credit: float,
    now: float,
    *,
    max_items: int,
    max_cost: float,
    fixed_cost: float = inf,
) -> tuple[list[QueuedCall], float]:
    """
    Take the next batch off the lanes: interactive calls first, but for what bulk calls are owed.

    What interactive calls leave is bulk's as well, until the batch takes half as long again as they would
    by themselves.  The first call is always taken, however costly, so that no call can block a queue
    for good.

    Args:
        credit: tokens that bulk calls are owed from the batches before.
        fixed_cost: tokens whose computing takes as long as the part of a batch's time that is the same
            for every batch.

    Returns:
        The batch, and the credit that bulk calls have afterwards.
    """
    batch: list[QueuedCall] = []
    cost = urgent_cost = 0
    interactive, bulk = lanes[INTERACTIVE], lanes[BULK]
    while len(batch) < max_items:
        drop_gone(interactive, now)
        drop_gone(bulk, now)
        both = bool(interactive and bulk)
        lane = bulk if not interactive or (both and credit >= bulk[0].prepared.cost) else interactive
        if not lane:
            break
        size = lane[0].prepared.cost
        filling = lane is bulk and urgent_cost and not both
        limit = min(max_cost, FILLED * urgent_cost + (FILLED - 1) * fixed_cost) if filling else max_cost
        if batch and cost + size > limit:
            break
        urgent_cost += size if lane is interactive else 0
        if both:
            credit += -size if lane is bulk else size * shares.owed(now - bulk[0].arrived)
        cost += size
        batch.append(lane.popleft())
    return batch, credit if bulk else 0.0


def drop_gone(lane: deque[QueuedCall], now: float) -> None:
    """Drop calls at the front whose callers have gone, or whose time has passed."""
    while lane and (lane[0].result.done() or lane[0].deadline <= now):
        lane.popleft().answer(DeadlineExceeded(stage="queue"))
