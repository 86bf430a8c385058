"""The replicas of a deployment that run, by Serve, and that have answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Self

from service.core.concurrency.tasks import Tasks
from service.serving.ray.contract import Deployment, Described, Lost

RETRY_S = 1.0  # until a replica that did not answer is called again


class Presence:
    """
    Gets the description of each new replica.

    Args:
        came: called with a replica that may be used from now on.
        went: called with the id of a replica that has ended.
    """

    def __init__(
        self,
        deployment: Deployment,
        came: Callable[[Described], None],
        went: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._deployment, self._came, self._went, self._sleep = deployment, came, went, sleep
        self._running: set[str] = set()
        self._describing = Tasks()

    async def __aenter__(self) -> Self:
        """Watch the replicas."""
        loop = asyncio.get_running_loop()

        def changed(ids: Sequence[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._changed, frozenset(ids))

        self._unlisten = self._deployment.listen(changed)
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Stop watching."""
        self._unlisten()
        self._running = set()
        await self._describing.cancel()

    def lost(self, id: str) -> None:
        """Get the description of a replica that did not answer again, while it runs by Serve."""
        self._describing.start(self._join(id))

    def _changed(self, ids: frozenset[str]) -> None:
        before, self._running = self._running, set(ids)
        for id in before - ids:
            self._went(id)
        for id in ids - before:
            self._describing.start(self._join(id))

    async def _join(self, id: str) -> None:
        while id in self._running:
            with suppress(Lost):
                described = await self._deployment.describe(id)
                if described.id == id and id in self._running:
                    self._came(described)
                    return
            await self._sleep(RETRY_S)
