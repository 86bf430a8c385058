"""
Retries of items until each has a score or a permanent error.

A refusal may end a trainer.  So if a queue is full, the service retries until the deadline.  Waiting
requests stand in line, and only the first checks for room, so the cost of waiting does not grow with
their number.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from service.core.concurrency.tasks import side_by_side
from service.core.errors import DeadlineExceeded, ScoregateError, bare
from service.scoring.engine import Engine
from service.scoring.plan import UnopenedItem
from service.scoring.report import MetricResult
from service.serving.context import Context, free
from service.web.dialects.failures import is_temporary
from service.web.dialects.retry_budget import RetryBudget
from service.web.dialects.unheard import Unheard

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 4.0

Outcomes = Mapping[str, MetricResult]


class DeadlineRetry:
    """
    The items of one request.

    Args:
        metrics: the metrics of each item.
        unheard: logs warnings.
    """

    def __init__(
        self,
        engine: Engine,
        items: Sequence[UnopenedItem],
        metrics: Sequence[tuple[str, ...]],
        context: Context,
        unheard: Unheard,
    ) -> None:
        self._engine, self._items, self._context, self._unheard = engine, items, context, unheard
        self._missing = dict(enumerate(metrics))  # by the item's number, what has no lasting outcome
        self._outcomes: list[dict[str, MetricResult]] = [{} for _ in items]
        self._charged: set[int] = set()  # items that the quota was charged for

    async def outcomes(self, room: RetryBudget, size: int) -> Sequence[Outcomes]:
        """
        Return the outcome of each metric for each item; refusals stay if the deadline is near.

        Args:
            room: the budget in which they wait, with *size* bytes.

        Raises:
            Overloaded: there is no room.
        """
        loop, wait_s = asyncio.get_running_loop(), FIRST_WAIT_S
        with ExitStack() as waiting:
            if placed := room.is_waited_for(self._metric):  # it may not overtake earlier requests
                waiting.enter_context(room.place(self._metric, size, len(self._items)))
                await self._turn(room)
            while True:
                await self._score_missing()
                if not self._missing or loop.time() >= self._context.deadline:
                    return self._outcomes
                if not placed:
                    waiting.enter_context(room.place(self._metric, size, len(self._items)))
                    placed = True
                if await self._turn(room):
                    continue
                pause_s = max(wait_s * random.uniform(0.5, 1.5), room.pause_s)
                if loop.time() + pause_s >= self._context.deadline:
                    return self._outcomes
                await asyncio.sleep(pause_s)  # the refusal came after the admission
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    @property
    def _metric(self) -> str:
        """Return the first missing metric, for which the request waits in line."""
        return next(iter(self._missing.values()))[0]

    async def _turn(self, room: RetryBudget) -> bool:
        """
        Wait for earlier requests, and then for room in the lane; until the deadline at most.

        Returns:
            True if the request had to wait.
        """
        waited = False
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._context.deadline), room.turn(self._metric) as waited:
                while True:
                    if self._has_room():
                        return waited
                    waited = True
                    await asyncio.sleep(FIRST_WAIT_S)
        return waited

    def _has_room(self) -> bool:
        """Return True if a missing metric would now be admitted, or refused permanently."""
        for (metrics, _), numbers in self._groups().items():
            try:
                self._engine.admit([self._items[n] for n in numbers], metrics, self._context)
            except ScoregateError as error:
                if is_temporary(error):
                    continue
            return True
        return False

    def _groups(self) -> dict[tuple[tuple[str, ...], bool], list[int]]:
        """Group items by their missing metrics, and by whether a quota was charged for them."""
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for number, metrics in self._missing.items():
            groups.setdefault((metrics, number in self._charged), []).append(number)
        return groups

    async def _score_missing(self) -> None:
        """Score the missing metrics once; items with the same ones together."""
        await side_by_side([self._score(*group, numbers) for group, numbers in self._groups().items()])
        found = {number: self._outcomes[number].items() for number in self._missing}
        missing = {
            number: tuple(name for name, outcome in outcomes if is_temporary(outcome))
            for number, outcomes in found.items()
        }
        self._missing = {number: metrics for number, metrics in missing.items() if metrics}

    async def _score(self, metrics: tuple[str, ...], charged: bool, numbers: Sequence[int]) -> None:
        if asyncio.get_running_loop().time() >= self._context.deadline:  # while other requests ran
            for number in numbers:
                late = dict.fromkeys(metrics, DeadlineExceeded(stage="queue"))
                self._outcomes[number] = late | self._outcomes[number]
            return
        context = replace(self._context, charge=free) if charged else self._context
        try:
            report = await self._engine.score([self._items[n] for n in numbers], metrics, context)
        except ScoregateError as error:
            for number in numbers:
                self._outcomes[number] |= dict.fromkeys(metrics, bare(error))
            return
        self._charged.update(numbers)
        self._unheard.note(report.warnings)
        for number, item in zip(numbers, report.items, strict=True):
            self._outcomes[number] |= item.results
