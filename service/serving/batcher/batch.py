"""Batches on demand: the calls that form the next batch of a model (see ADR 0001)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

from models.core.contract import Prepared
from models.core.outcomes import CallResult
from service.core.concurrency.promise import Promise
from service.core.errors import ScoregateError
from service.core.lanes import BULK, INTERACTIVE
from service.observability.tracing.span import NO_SPAN, Span
from service.serving.contract import Result

FILLED = 1.5  # maximum time of a batch that bulk calls fill up, relative to its interactive calls alone


@dataclass(eq=False, slots=True)
class QueuedCall:
    """
    One call in a queue: a `StartedCall`.

    Attributes:
        arrived: time of joining the queue, in seconds.
        result: becomes its `Result`; done early if the caller has gone.
        deadline: on the event loop's clock; later batches do not take the call.
        running: its batch has begun.
        waited_s: seconds in the queue, set when its batch begins.
        counted_in: the lane that holds and counts it while it waits; empty before and after.
        queue: the `Queue` that it joined last.
        span: of the first caller.
        batch: the traceparent of its batch's span, if that is recorded.
        losses: number of devices or replicas that were lost while they had it.
    """

    prepared: Prepared
    lane: str
    arrived: float
    deadline: float = inf
    result: Promise[Result] = field(default_factory=Promise)
    running: bool = False
    waited_s: float = 0.0
    counted_in: str = ""
    queue: Any = None
    span: Span = NO_SPAN
    batch: str = ""
    losses: int = 0

    def begin(self, now: float) -> None:
        """Note that its batch begins."""
        self.running, self.waited_s = True, now - self.arrived

    def answer(self, outcome: CallResult | ScoregateError, ran_s: float = 0.0) -> None:
        """Set the result, unless the caller has gone."""
        if not self.result.done():
            self.result.set_result(Result(outcome, self.waited_s, ran_s, self.batch))

    def has_gone(self, now: float) -> bool:
        """Return True if no batch may take the call: its caller has gone or its deadline has passed."""
        return self.result.done() or self.deadline <= now

    def promote(self) -> None:
        """Make it interactive."""
        self.queue.promote(self)

    def extend(self, deadline: float) -> None:
        """Let batches take it until *deadline*."""
        self.deadline = deadline

    def cancel(self) -> None:
        """Remove it from the queue, or discard its result if it runs."""
        self.result.cancel()


@dataclass(frozen=True, slots=True)
class Shares:
    """
    How lanes share a batch while calls of both wait.

    For each token of interactive calls, bulk calls earn bulk/interactive tokens, and more the longer the
    first of them has waited (twice as much after *ageing_s*), at most one.
    """

    interactive: float = 9.0
    bulk: float = 1.0
    ageing_s: float = 10.0

    def earned(self, waited_s: float) -> float:
        """Return the tokens that bulk calls earn with each interactive one."""
        return min(1.0, self.bulk / self.interactive * (1 + waited_s / self.ageing_s))

    def weight(self, lane: str) -> float:
        """Return the share of *lane*."""
        return self.interactive if lane == INTERACTIVE else self.bulk


def take_batch(
    lanes: Mapping[str, Iterable[QueuedCall]],
    shares: Shares,
    credit: float,
    now: float,
    *,
    max_items: int,
    max_cost: float,
    fixed_cost: float = inf,
) -> tuple[list[QueuedCall], float]:
    """
    Return the next batch, and the credit that bulk calls have afterwards.  The lanes stay as they are.

    Interactive calls go first.  Bulk calls get their earned share, plus spare capacity until the batch
    takes 1.5 times as long as its interactive calls alone.  The first call is always taken, however
    costly, so that no call can block a queue.

    Args:
        credit: tokens that bulk calls have earned in earlier batches.
        fixed_cost: tokens that take as long to compute as the fixed part of a batch's time.
    """
    batch: list[QueuedCall] = []
    cost = urgent_cost = 0
    waiting = {lane: live(calls, now) for lane, calls in lanes.items()}
    first = {lane: next(calls, None) for lane, calls in waiting.items()}
    while len(batch) < max_items:
        interactive, bulk = first[INTERACTIVE], first[BULK]
        take_bulk = bulk and (not interactive or credit >= bulk.prepared.cost)
        call = bulk if take_bulk else interactive
        if not call:
            break
        size = call.prepared.cost
        filling = not interactive and urgent_cost
        limit = min(max_cost, FILLED * urgent_cost + (FILLED - 1) * fixed_cost) if filling else max_cost
        if batch and cost + size > limit:
            break
        if call is interactive:
            urgent_cost += size
        if interactive and bulk:
            credit += size * shares.earned(now - bulk.arrived) if call is interactive else -size
        cost += size
        batch.append(call)
        lane = INTERACTIVE if call is interactive else BULK
        first[lane] = next(waiting[lane], None)
    return batch, credit if first[BULK] else 0.0


def live(calls: Iterable[QueuedCall], now: float) -> Iterator[QueuedCall]:
    """Yield the calls that a batch may take."""
    return (call for call in calls if not call.has_gone(now))
