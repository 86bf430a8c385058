"""A budget: a bounded amount that callers share."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.core.concurrency.turns import CALLER, Turns

Waiting = Turns[tuple[int, "asyncio.Future[None]"]]


class Budget:
    """
    A semaphore for amounts: urgent callers first, then all callers in turns.

    Callers that hold nothing come before those that hold a portion, so that a caller with many large
    images takes spare capacity only.

    Args:
        total: the amount.
        for_urgent: the part of it that only urgent callers may take.
    """

    def __init__(self, total: int, for_urgent: int = 0) -> None:
        self._total, self._free, self._for_urgent = total, total, for_urgent
        self._holders: Counter[object] = Counter()
        self._urgent: Waiting = Turns()
        self._patient: Waiting = Turns()

    @property
    def held(self) -> int:
        """The amount that is taken."""
        return self._total - self._free

    @asynccontextmanager
    async def hold(self, amount: int, urgent: bool = True) -> AsyncIterator[None]:
        """Take *amount* while the context is open.  It must not exceed what the caller may take."""
        portion = await self.take(amount, urgent)
        try:
            yield
        finally:
            portion.give_back(amount)

    async def take(self, amount: int, urgent: bool = True) -> "Portion":
        """Wait for *amount*, which must not exceed what the caller may take."""
        if now := self.take_now(amount, urgent):
            return now
        portion = Portion(self, CALLER.get().who)
        turn = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._patient).add((amount, turn))
        self.serve()
        try:
            await turn
        except asyncio.CancelledError:
            portion.give_back(amount if turn.done() and not turn.cancelled() else 0)
            raise
        return portion

    def take_now(self, amount: int, urgent: bool = True) -> "Portion | None":
        """Take *amount* if it is free and no earlier caller waits; return None otherwise."""
        if self._urgent or (self._patient and not urgent) or not self._fits(amount, urgent):
            return None
        portion = Portion(self, CALLER.get().who)
        self.change(portion.who, amount)
        return portion

    def _fits(self, amount: int, urgent: bool) -> bool:
        return amount <= self._free - (0 if urgent else self._for_urgent)

    def change(self, who: object, amount: int) -> None:
        """Change the amount that a caller holds."""
        self._free -= amount
        self._holders[who] += amount
        if not self._holders[who]:
            del self._holders[who]

    def serve(self) -> None:
        """Resume the waiting callers for whom there is enough."""
        while waiting := self._urgent or self._patient:
            who, (amount, turn) = waiting.first(self._holders)
            if turn.cancelled():
                waiting.take(self._holders)
            elif self._fits(amount, bool(self._urgent)):
                waiting.take(self._holders)
                self.change(who, amount)
                turn.set_result(None)
            else:
                return


class Portion:
    """The part of a budget that a caller holds."""

    def __init__(self, budget: Budget, who: object) -> None:
        self._budget, self.who = budget, who

    def give_back(self, amount: int) -> None:
        """Return *amount* of it to the budget."""
        self._budget.change(self.who, -amount)
        self._budget.serve()
