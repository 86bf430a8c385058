"""A bounded amount of something, held by whoever works with it."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    """First come, first served; a holder gives its share back when it is done."""

    def __init__(self, total: int) -> None:
        self._total, self._free = total, total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def held(self) -> int:
        """How much is out."""
        return self._total - self._free

    @asynccontextmanager
    async def hold(self, amount: int) -> AsyncIterator[None]:
        """Wait for *amount* (at most the total), then hold it."""
        await self._take(amount)
        try:
            yield
        finally:
            self._free += amount
            self._serve()

    async def _take(self, amount: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free += amount
            self._serve()
            raise

    def _serve(self) -> None:
        while self._waiting:
            amount, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
            elif amount <= self._free:
                self._waiting.popleft()
                self._free -= amount
                turn.set_result(None)
            else:
                return
