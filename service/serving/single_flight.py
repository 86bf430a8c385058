"""Work done once however many ask for it at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """
    Calls under way, by key.

    The work belongs to no caller: when the first one leaves, it goes on for the others, and when all
    have left it still ends, since its result will be stored.  A failure reaches everyone who waits
    and is then forgotten.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Task[T]] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def do(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of *work* and whether this caller joined a flight under way."""
        joined = key in self._flights
        if not joined:
            flight = self._flights[key] = asyncio.create_task(self._fly(key, work))
            # When everyone has left, nobody asks for its exception; that is no reason to complain.
            flight.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._flights[key]), joined

    async def _fly(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            del self._flights[key]

    async def aclose(self) -> None:
        """Cancel what is still under way and wait for it to end."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
