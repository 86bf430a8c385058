"""Which replicas of a deployment are there: those that Serve says run, and that have answered."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Self

from service.core.concurrency.tasks import Tasks
from service.serving.ray.contract import Deployment, Described, Lost

RETRY_S = 1.0  # until a replica that did not answer is asked again


class Presence:
    """
    Asks every replica what it holds as it comes.

    Args:
        came: told of a replica that may be asked from now on.
        went: told the id of one that may no longer.
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
        self._asking = Tasks()

    async def __aenter__(self) -> Self:
        """Learn of the replicas that run."""
        loop = asyncio.get_running_loop()

        def changed(ids: Sequence[str]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._changed, frozenset(ids))

        self._unlisten = self._deployment.listen(changed)
        self._asking.start(self._meet())
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Learn of nothing any more."""
        self._unlisten()
        self._running = set()
        await self._asking.cancel()

    def lost(self, id: str) -> None:
        """A replica did not answer: it is asked what it holds again, as long as Serve says that it runs."""
        self._asking.start(self._join(id))

    async def _meet(self) -> None:
        """The first call, to any replica: Serve tells us of all of them then."""
        with suppress(Lost):
            await self._deployment.describe("")

    def _changed(self, ids: frozenset[str]) -> None:
        before, self._running = self._running, set(ids)
        for id in before - ids:
            self._went(id)
        for id in ids - before:
            self._asking.start(self._join(id))

    async def _join(self, id: str) -> None:
        while id in self._running:
            with suppress(Lost):
                described = await self._deployment.describe(id)
                if described.id == id and id in self._running:
                    self._came(described)
                    return
            await self._sleep(RETRY_S)
