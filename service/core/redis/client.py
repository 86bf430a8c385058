"""One Redis: commands with bounds, and whether it is there."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from service.core.concurrency.watcher import Watcher
from service.core.redis.failures import reason
from service.core.redis.url import has_tls, shown

log = logging.getLogger("scoregate.redis")

T = TypeVar("T")

TIMEOUT_S = 1.0  # of a command with all that it takes: connecting, and once more where a connection broke
WATCH_S = 1.0
CONNECTIONS = 16


class RedisFailed(Exception):
    """
    Redis did not do what it was asked; the message says why in a few words.

    Attributes:
        answered: it is there, and refused this command.
    """

    def __init__(self, kind: str, answered: bool = False) -> None:
        super().__init__(kind)
        self.answered = answered


class RedisClient:
    """
    The Redis behind one cache.

    It is looked at every second.  Once it was found missing, commands fail at once until a look finds
    it again, so that a dead Redis takes its timeout from those only who find it dead.

    Args:
        cache: whose it is, for the log.
        ca_file: certificates that are trusted beside the system's, for an address with `rediss://`.
        timeout_s: of one command.
        failed: called for each command that failed.
        sleep: how to wait between two looks (tests).
    """

    def __init__(
        self,
        cache: str,
        url: str,
        *,
        ca_file: Path | None = None,
        timeout_s: float = TIMEOUT_S,
        failed: Callable[[], object] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        # The package is an extra: nothing but a Redis in the settings may need it.
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError, ResponseError

        trusted: dict[str, Any] = {"ssl_ca_certs": str(ca_file)} if ca_file and has_tls(url) else {}
        self._redis = Redis.from_url(
            url,
            protocol=2,  # every Redis speaks it
            **trusted,
            socket_connect_timeout=timeout_s,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 1),
        )
        self._refusal = ResponseError
        self._errors = (
            RedisError,
            OSError,
            TimeoutError,
            ValueError,
        )  # ValueError: what answers is not a Redis
        self._name = f"the Redis of the cache {cache}, {shown(url)},"
        self._failed = failed
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._missing = ""
        self._refusals: set[str] = set()  # that the log has told
        self._watcher = Watcher(self.look, WATCH_S, sleep)

    @property
    def missing(self) -> str:
        """Why it cannot be asked now; empty where it can."""
        return self._missing and f"cannot be asked: {self._missing}"

    async def __aenter__(self) -> Self:
        """Look once, then keep watching."""
        await self._watcher.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        await self._watcher.aclose()
        with suppress(*self._errors):
            await self._redis.aclose()

    async def do(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """What *work* got of the `redis.asyncio.Redis` it is given.  Raises `RedisFailed` in bounded time."""
        try:
            async with self._slots:
                if self._missing:
                    raise RedisFailed(self._missing)
                return await self._bounded(work)
        except RedisFailed as failed:
            self._failed()
            if failed.answered:
                self._refused(str(failed))
            else:
                self._found(str(failed))
            raise

    async def look(self) -> None:
        """Ask whether it is there, lets us in and is new enough: `HELLO` came with Redis 6.0."""
        try:
            await self._bounded(lambda redis: redis.execute_command("HELLO", 2))
        except RedisFailed as failed:
            self._found(str(failed))
        else:
            self._found("")

    async def _bounded(self, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await work(self._redis)
        except self._errors as exc:
            raise RedisFailed(reason(exc), isinstance(exc, self._refusal)) from exc

    def _found(self, missing: str) -> None:
        """Log an outage once when it begins, and once when it ends."""
        if missing and not self._missing:
            log.warning("%s cannot be asked: %s", self._name, missing)
        if self._missing and not missing:
            log.info("%s is back", self._name)
            self._refusals.clear()
        self._missing = missing

    def _refused(self, kind: str) -> None:
        if kind not in self._refusals:
            self._refusals.add(kind)
            log.warning("%s refuses commands: %s", self._name, kind)
