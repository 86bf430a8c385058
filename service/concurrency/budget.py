"""A bounded amount of something, held by whoever works with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.concurrency.turns import Turns

Waiting = Turns[tuple[int, "asyncio.Future[None]"]]


class Budget:
    """
    The urgent first, then requests in turns; a holder gives its share back when it is done.

    Args:
        total: how much there is.
        for_urgent: how much of it only urgent holders may take.
    """

    def __init__(self, total: int, for_urgent: int = 0) -> None:
        self._total, self._free, self._for_urgent = total, total, for_urgent
        self._urgent: Waiting = Turns()
        self._patient: Waiting = Turns()

    @property
    def held(self) -> int:
        """How much is out."""
        return self._total - self._free

    @asynccontextmanager
    async def hold(self, amount: int, urgent: bool = True) -> AsyncIterator[None]:
        """Wait for *amount* (at most what this holder may take), then hold it."""
        await self.take(amount, urgent)
        try:
            yield
        finally:
            self.give_back(amount)

    async def take(self, amount: int, urgent: bool = True) -> None:
        """Wait for *amount* (at most what this holder may take); whoever takes it gives it back."""
        if self.take_now(amount, urgent):
            return
        turn = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._patient).add((amount, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            self.give_back(amount if turn.done() and not turn.cancelled() else 0)
            raise

    def take_now(self, amount: int, urgent: bool = True) -> bool:
        """Take *amount* if it is free and nobody waits before; return whether it was taken."""
        now = self._fits(amount, urgent) and not self._urgent and (urgent or not self._patient)
        if now:
            self._free -= amount
        return now

    def _fits(self, amount: int, urgent: bool) -> bool:
        return amount <= self._free - (0 if urgent else self._for_urgent)

    def give_back(self, amount: int) -> None:
        """Let others have *amount*."""
        self._free += amount
        self._serve()

    def _serve(self) -> None:
        while waiting := self._urgent or self._patient:
            amount, turn = waiting.first()
            if turn.cancelled():
                waiting.take()
            elif self._fits(amount, bool(self._urgent)):
                waiting.take()
                self._free -= amount
                turn.set_result(None)
            else:
                return
