"""
Items that are asked for until each has a score, or an error that stays.

A trainer that is refused may die of it.  So what is refused for its load is asked again, until the deadline.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from service.concurrency.together import side_by_side
from service.context import Context, free
from service.dialects.failures import is_temporary
from service.dialects.unheard import Unheard
from service.dialects.waiting import WaitingRoom
from service.engine import Engine
from service.errors import ScoregateError, bare
from service.items import UnopenedItem
from service.report import Outcome

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 4.0

Outcomes = Mapping[str, Outcome]


class Patience:
    """
    The items of one request.

    Args:
        metrics: those that each item is asked for.
        unheard: told of warnings.
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
        self._outcomes: list[dict[str, Outcome]] = [{} for _ in items]
        self._charged: set[int] = set()  # a quota is charged for an item once

    async def outcomes(self, room: WaitingRoom, size: int) -> Sequence[Outcomes]:
        """
        For each item what came of each metric; refusals are left where the deadline is too near to ask again.

        Args:
            room: where they wait, with *size* bytes.

        Raises:
            Overloaded: there is no room.
        """
        loop, wait_s = asyncio.get_running_loop(), FIRST_WAIT_S
        with ExitStack() as waiting:
            while True:
                await self._ask_for_the_missing()
                pause_s = wait_s * random.uniform(0.5, 1.5)
                if not self._missing or loop.time() + pause_s >= self._context.deadline:
                    return self._outcomes
                if wait_s == FIRST_WAIT_S:
                    waiting.enter_context(room.place(size))
                await asyncio.sleep(pause_s)
                wait_s = min(2 * wait_s, LONGEST_WAIT_S)

    async def _ask_for_the_missing(self) -> None:
        """Ask once; items that miss the same metrics are asked for together."""
        groups: dict[tuple[tuple[str, ...], bool], list[int]] = {}
        for number, metrics in self._missing.items():
            groups.setdefault((metrics, number in self._charged), []).append(number)
        await side_by_side([self._ask(*group, numbers) for group, numbers in groups.items()])
        found = {number: self._outcomes[number].items() for number in self._missing}
        missing = {
            number: tuple(name for name, outcome in outcomes if is_temporary(outcome))
            for number, outcomes in found.items()
        }
        self._missing = {number: metrics for number, metrics in missing.items() if metrics}

    async def _ask(self, metrics: tuple[str, ...], charged: bool, numbers: Sequence[int]) -> None:
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
            self._outcomes[number] |= item.outcomes
