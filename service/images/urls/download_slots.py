"""How many pictures are fetched at the same time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.core.concurrency.turns import CALLER

MAX_FETCHES = 64
MAX_BULK = 32  # so that interactive requests never wait for bulk ones
MAX_PER_HOST = 16  # a host that hangs delays no other host
MAX_PER_CALLER = 16  # nor does one caller whose hosts all hang


@dataclass(frozen=True, eq=False)
class Fetch:
    """One picture to be fetched: its host, the request that it belongs to, and its lane."""

    host: str
    caller: object
    urgent: bool
    begin: "asyncio.Future[None]"

    def limits(self) -> Iterator[tuple[Hashable, int]]:
        """What the fetch counts for, each with the most fetches at the same time."""
        yield "all", MAX_FETCHES
        yield ("host", self.host), MAX_PER_HOST
        yield ("caller", self.caller), MAX_PER_CALLER
        if not self.urgent:
            yield "bulk", MAX_BULK


class DownloadSlots:
    """
    Bounds the fetches that are under way, in all, by host, by caller and in bulk.

    Of the fetches that wait, the interactive ones come first, then those of the caller with the fewest
    under way, then the oldest.
    """

    def __init__(self) -> None:
        self._running: Counter[Hashable] = Counter()
        self._waiting: list[Fetch] = []

    @asynccontextmanager
    async def hold(self, host: str, urgent: bool) -> AsyncIterator[None]:
        """Wait until one more picture of *host* may be fetched, and count it while the context is open."""
        fetch = Fetch(host, CALLER.get().who, urgent, asyncio.get_running_loop().create_future())
        self._waiting.append(fetch)
        self._start()
        try:
            await fetch.begin
            yield
        finally:
            self._end(fetch)

    def _end(self, fetch: Fetch) -> None:
        if fetch in self._waiting:
            self._waiting.remove(fetch)
        else:
            self._running.subtract(key for key, _ in fetch.limits())
            self._running += Counter()  # without the keys that count nothing
            self._start()

    def _start(self) -> None:
        while fetch := following(self._waiting, self._running):
            self._waiting.remove(fetch)
            self._running.update(key for key, _ in fetch.limits())
            fetch.begin.set_result(None)


def following(waiting: Iterable[Fetch], running: Counter[Hashable]) -> Fetch | None:
    """Return the next of the *waiting* fetches, in the order of their age, that the limits allow."""
    return min(
        (fetch for fetch in waiting if all(running[key] < most for key, most in fetch.limits())),
        key=lambda fetch: (not fetch.urgent, running["caller", fetch.caller]),
        default=None,
    )
