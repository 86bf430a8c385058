"""Limits on concurrent downloads."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from service.core.concurrency.turns import CALLER

MAX_FETCHES = 64
MAX_BULK = 32  # so that interactive requests never wait for bulk ones
MAX_PER_HOST = 16  # so that a host that hangs delays no other host
MAX_PER_CALLER = 16  # so that a caller whose hosts hang delays no other caller


@dataclass(frozen=True, eq=False)
class Fetch:
    """One download: its host, its caller, and its lane."""

    host: str
    caller: object
    urgent: bool
    begin: "asyncio.Future[None]"

    def limits(self) -> Iterator[tuple[Hashable, int]]:
        """Yield the counters of the download, each with its limit."""
        yield "all", MAX_FETCHES
        yield ("host", self.host), MAX_PER_HOST
        yield ("caller", self.caller), MAX_PER_CALLER
        if not self.urgent:
            yield "bulk", MAX_BULK


class DownloadSlots:
    """
    Bounds running downloads: in all, by host, by caller and in bulk.

    Of waiting downloads, interactive ones come first, then those of the caller with the fewest running,
    then the oldest.
    """

    def __init__(self) -> None:
        self._running: Counter[Hashable] = Counter()
        self._waiting: list[Fetch] = []

    @asynccontextmanager
    async def hold(self, host: str, urgent: bool) -> AsyncIterator[None]:
        """Wait for a slot for *host*, and hold it while the context is open."""
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
    """Return the next of the *waiting* downloads, oldest first, that the limits allow."""
    return min(
        (fetch for fetch in waiting if all(running[key] < most for key, most in fetch.limits())),
        key=lambda fetch: (not fetch.urgent, running["caller", fetch.caller]),
        default=None,
    )
