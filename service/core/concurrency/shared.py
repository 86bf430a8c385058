"""An async context that several callers share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """A context that is entered for its first holder and exited after its last one."""

    def __init__(self) -> None:
        self._entering = asyncio.Lock()
        self._holders = 0  # including those that wait for it to be entered
        self._entered: tuple[AbstractAsyncContextManager[T], T] | None = None

    @asynccontextmanager
    async def hold(self, enter: Callable[[], AbstractAsyncContextManager[T]]) -> AsyncIterator[T]:
        """
        Hold the context, and yield its value.  Raises what entering the context raises.

        Args:
            enter: makes the context for the first holder.  It is not stored, so that it may refer to the
                owner of this object without a reference cycle.
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
