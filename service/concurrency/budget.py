"""A bounded amount of something, held by whoever works with it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

Waiting = deque[tuple[int, "asyncio.Future[None]"]]


class Budget:
    """The urgent first, then first come, first served; a holder gives its share back when it is done."""

    def __init__(self, total: int) -> None:
        self._total, self._free = total, total
        self._urgent: Waiting = deque()
        self._patient: Waiting = deque()

    @property
    def held(self) -> int:
        """How much is out."""
        return self._total - self._free

    @asynccontextmanager
    async def hold(self, amount: int, urgent: bool = True) -> AsyncIterator[None]:
        """Wait for *amount* (at most the total), then hold it."""
        await self._take(amount, self._urgent if urgent else self._patient)
        try:
            yield
        finally:
            self._free += amount
            self._serve()

    async def _take(self, amount: int, waiting: Waiting) -> None:
        turn = asyncio.get_running_loop().create_future()
        waiting.append((amount, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free += amount
            self._serve()
            raise

    def _serve(self) -> None:
        while waiting := self._urgent or self._patient:
            amount, turn = waiting[0]
            if turn.cancelled():
                waiting.popleft()
            elif amount <= self._free:
                waiting.popleft()
                self._free -= amount
                turn.set_result(None)
            else:
                return
