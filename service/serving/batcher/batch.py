"""Batches on demand: the calls that form the next batch of a model (see ADR 0001)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf

from service.core.lanes import BULK, INTERACTIVE
from service.serving.job import Job

FILLED = 1.5  # maximum time of a batch that bulk calls fill up, relative to its interactive calls alone


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
    lanes: Mapping[str, Iterable[Job]],
    shares: Shares,
    credit: float,
    now: float,
    *,
    max_items: int,
    max_cost: float,
    fixed_cost: float = inf,
) -> tuple[list[Job], float]:
    """
    Return the next batch, and the credit that bulk calls have afterwards.  The lanes stay as they are.

    Interactive calls go first.  Bulk calls get their earned share, plus spare capacity until the batch
    takes 1.5 times as long as its interactive calls alone.  The first call is always taken, however
    costly, so that no call can block a queue.

    Args:
        credit: tokens that bulk calls have earned in earlier batches.
        fixed_cost: tokens that take as long to compute as the fixed part of a batch's time.
    """
    batch: list[Job] = []
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


def live(calls: Iterable[Job], now: float) -> Iterator[Job]:
    """Yield the calls that a batch may take."""
    return (call for call in calls if not call.has_gone(now))
