"""A bounded amount of something, held by whoever works with it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.core.concurrency.turns import CALLER, Turns

Waiting = Turns[tuple[int, "asyncio.Future[None]"]]


class Budget:
    """
    The urgent first, then callers in turns; a holder gives its portion back when it is done.

    Whoever holds nothing goes before those who hold something: a caller with many large pictures takes what
    is left, and others need not wait until that is enough.

    Args:
        total: how much there is.
        for_urgent: how much of it only urgent holders may take.
    """

    def __init__(self, total: int, for_urgent: int = 0) -> None:
        self._total, self._free, self._for_urgent = total, total, for_urgent
        self._holders: Counter[object] = Counter()
        self._urgent: Waiting = Turns()
        self._patient: Waiting = Turns()

    @property
    def held(self) -> int:
        """How much is out."""
        return self._total - self._free

    @asynccontextmanager
    async def hold(self, amount: int, urgent: bool = True) -> AsyncIterator[None]:
        """Wait for *amount* (at most what this holder may take), then hold it."""
        portion = await self.take(amount, urgent)
        try:
            yield
        finally:
            portion.give_back(amount)

    async def take(self, amount: int, urgent: bool = True) -> "Portion":
        """Wait for *amount* (at most what this holder may take); whoever takes it gives it back."""
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
        """Take *amount* if it is free and nobody waits for it before; return None otherwise."""
        if self._urgent or (self._patient and not urgent) or not self._fits(amount, urgent):
            return None
        portion = Portion(self, CALLER.get().who)
        self.change(portion.who, amount)
        return portion

    def _fits(self, amount: int, urgent: bool) -> bool:
        return amount <= self._free - (0 if urgent else self._for_urgent)

    def change(self, who: object, amount: int) -> None:
        """Let a caller hold so much more, or less."""
        self._free -= amount
        self._holders[who] += amount
        if not self._holders[who]:
            del self._holders[who]

    def serve(self) -> None:
        """Let those have their turns for whom there is enough."""
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
    """What a caller has of a budget."""

    def __init__(self, budget: Budget, who: object) -> None:
        self._budget, self.who = budget, who

    def give_back(self, amount: int) -> None:
        """Let others have *amount* of it."""
        self._budget.change(self.who, -amount)
        self._budget.serve()
