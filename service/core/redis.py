"""A Redis that processes share: its address, and a client with bounded waits and a health check."""

import asyncio
import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeVar

from service.core.concurrency.watcher import Watcher

log = logging.getLogger("scoregate.redis")

T = TypeVar("T")

TIMEOUT_S = 1.0  # a command's time, with connecting and one retry after a broken connection
WATCH_S = 1.0
CONNECTIONS = 16
TOO_OLD = "it lacks a command; Redis 6.0 or later is needed"

SCHEMES = ("redis://", "rediss://", "unix://")
ADDRESS = re.compile(
    r"rediss?://([^@/?#\s]*@)?(?P<host>[\w.-]+|\[[\da-fA-F:.]+\])(:(?P<port>\d{1,5}))?(/\d{0,4})?"
    r"|unix://([^@/?#\s]*@)?(?P<path>/[^@?#\s]+)(\?db=\d{1,4})?",
    re.ASCII,
)


class RedisFailed(Exception):
    """
    A command failed; the message gives the reason in a few words.

    Attributes:
        answered: True if the server was reached and refused the command.
    """

    def __init__(self, kind: str, answered: bool = False) -> None:
        super().__init__(kind)
        self.answered = answered


class RedisClient:
    """
    The Redis of one cache.

    A health check runs every second.  While Redis is down, commands fail immediately, so that only
    the first ones wait for the timeout.

    Args:
        cache: name of the cache, for the log.
        ca_file: certificates to trust in addition to the system's, for `rediss://`.
        timeout_s: of one command.
        failed: called for each failed command.
        sleep: waits between two health checks; tests replace it.
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
        # The package is an extra, imported only if the settings name a Redis.
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import RedisError, ResponseError

        trusted: dict[str, Any] = {"ssl_ca_certs": str(ca_file)} if ca_file and has_tls(url) else {}
        self._redis = Redis.from_url(
            url,
            protocol=2,  # supported by every Redis
            **trusted,
            socket_connect_timeout=timeout_s,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 1),
        )
        self._refusal = ResponseError
        # ValueError: the server is not a Redis.
        self._errors = (RedisError, OSError, TimeoutError, ValueError)
        self._name = f"the Redis of the cache {cache}, {shown(url)},"
        self._failed = failed
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(CONNECTIONS)
        self._missing = ""
        self._refusals: set[str] = set()  # these are logged already
        self._watcher = Watcher(self.look, WATCH_S, sleep)

    @property
    def missing(self) -> str:
        """The reason why Redis cannot be used now; empty if it can."""
        return self._missing and f"cannot be used: {self._missing}"

    async def __aenter__(self) -> Self:
        """Run one health check, then start the periodic one."""
        await self._watcher.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        await self._watcher.aclose()
        with suppress(*self._errors):
            await self._redis.aclose()

    async def do(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """
        Return the result of *work*, called with the `redis.asyncio.Redis`.  Raises `RedisFailed` in bounded
        time.
        """
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
        """Check that the server is reachable, accepts us and is recent enough: `HELLO` needs Redis 6.0."""
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
        """Update the state; log an outage once when it begins and once when it ends."""
        if missing and not self._missing:
            log.warning("%s cannot be used: %s", self._name, missing)
        if self._missing and not missing:
            log.info("%s is back", self._name)
            self._refusals.clear()
        self._missing = missing

    def _refused(self, kind: str) -> None:
        if kind not in self._refusals:
            self._refusals.add(kind)
            log.warning("%s refuses commands: %s", self._name, kind)


def reason(exc: BaseException) -> str:
    """Return the error's name, and the remedy if one is known."""
    for error in chain(exc):
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return f"TLS failed ({error.reason}): is this a port for TLS?"
    name = type(exc).__name__
    if name.startswith("Authentication"):
        return f"{name}: it refuses the user or the password, or requires one"
    if "unknown command" in str(exc).lower():
        return TOO_OLD
    # Messages of libraries may quote addresses, which may hold passwords, so only the name is logged.
    return name


def chain(exc: BaseException) -> Iterator[BaseException]:
    """Iterate over *exc* and its causes."""
    error: BaseException | None = exc
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_redis(place: str) -> bool:
    """Return True if a cache's *place* is the address of a Redis."""
    return place.startswith(SCHEMES)


def has_tls(url: str) -> bool:
    """Return True if the connection is encrypted and the server's certificate is checked."""
    return url.startswith("rediss://")


def check(url: str) -> None:
    """
    Check an address.  Raises `ValueError` with a message that never quotes *url*, which may hold a password.
    """
    found = ADDRESS.fullmatch(url)
    if found is None or int(found["port"] or 1) not in range(1, 65536):
        form = "redis://[USER:PASSWORD@]HOST[:PORT][/DB]"
        raise ValueError(f"not a Redis address; write {form}, with special characters percent-encoded")
    if find_spec("redis") is None:
        raise ValueError("needs the package redis: pip install '.[redis]' in the repository's folder")


def shown(url: str) -> str:
    """Return host and port, or a socket's path: the only part that logs may contain."""
    found = ADDRESS.fullmatch(url)
    assert found is not None, "`check` took it"
    return found["path"] or f"{found['host']}:{found['port'] or 6379}"
