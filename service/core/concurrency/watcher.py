"""Periodic checks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger("scoregate.watcher")


class Watcher:
    """
    Calls *look* when it is started, and then every *every_s* seconds until it is closed.

    Exceptions are logged, except those of the first call, which are raised.

    Args:
        sleep: waits between two calls (tests).
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[None]],
        every_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._look, self._every_s, self._sleep = look, every_s, sleep
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Call *look*, and start the periodic calls."""
        await self._look()
        self._task = asyncio.create_task(self._watch())

    async def aclose(self) -> None:
        """Stop the periodic calls."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            await self._sleep(self._every_s)
            try:
                await self._look()
            except Exception as exc:
                log.error("a look failed", exc_info=exc)
