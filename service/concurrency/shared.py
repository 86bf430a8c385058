"""A context that several hold at the same time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """
    Entered with the first who holds it, and left with the last.

    Args:
        enter: makes the context; called anew whenever somebody holds it after all have let go.
    """

    def __init__(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._enter = enter
        self._entering = asyncio.Lock()
        self._holders = 0  # those who wait to enter it among them
        self._context: AbstractAsyncContextManager[T] | None = None
        self._value: T

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[T]:
        """The context's value, while this is open.  Raises what entering the context raises."""
        self._holders += 1
        try:
            async with self._entering:
                if self._context is None:
                    context = self._enter()
                    self._value = await context.__aenter__()
                    self._context = context
            yield self._value
        finally:
            self._holders -= 1
            if not self._holders and self._context is not None:
                context, self._context = self._context, None
                await context.__aexit__(None, None, None)
