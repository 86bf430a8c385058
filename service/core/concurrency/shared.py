"""A context that several hold at the same time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """Entered with the first who holds it, and left with the last."""

    def __init__(self) -> None:
        self._entering = asyncio.Lock()
        self._holders = 0  # those who wait to enter it among them
        self._entered: tuple[AbstractAsyncContextManager[T], T] | None = None

    @asynccontextmanager
    async def hold(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncIterator[T]:
        """
        The context's value, while this is open.  Raises what entering the context raises.

        Args:
            enter: makes the context, where nobody holds it yet.  It is not kept, so that an owner of this
                may be in it and goes when nobody names it any more.
        """
        self._holders += 1
        try:
            async with self._entering:
                if self._entered is None:
                    context = enter()
                    self._entered = context, await context.__aenter__()
            yield self._entered[1]
        finally:
            self._holders -= 1
            if not self._holders and self._entered is not None:
                (context, _), self._entered = self._entered, None
                await context.__aexit__(None, None, None)
