"""Calls over any transport, with timeouts, retries and failover; a breaker for calls with a fallback."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from math import inf
from threading import Lock
from typing import Any, TypeVar

from scoregate.errors import (
    CLIENT_CLOSED,
    ScoregateError,
    ServiceConnectionError,
    ServiceTimeoutError,
)
from scoregate.http import failure, httpx, problem_of

T = TypeVar("T")
JSON = "application/json"
MAX_TIMEOUT_MS = 600_000  # maximum that the service accepts

FIRST_RETRY_S, MAX_RETRY_S = 0.1, 5.0  # the wait before the first retry; each further one doubles it
BUSY_STATUSES = (429, 503)
SUCCESS_STATUSES = (200, 202)
KEY = re.compile(r"[!-~]+")
VARIABLE, DEFAULT = "SCOREGATE_BASE_URL", "http://127.0.0.1:8000"
UNIX = "unix:"
MAX_SOCKET_BYTES = 107  # the kernel accepts no longer path of a Unix socket
REST_S, MAX_REST_S = 0.5, 30.0  # rest after the first failure, which further ones double
SILENT_S = 1.0  # silence of a service, which itself answers before the deadline of its request

# --- transports ---


@dataclass(frozen=True)
class ServiceRequest:
    """
    One attempt of a call.

    Attributes:
        left: seconds, after which it is cancelled.
    """

    address: Address
    path: str
    left: float
    method: str = "GET"
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.address.url}{self.path}"


class Transport(ABC):
    """A way to services: over HTTP, or to one of this process."""

    async def prepare(self, path: str, content_type: str, content: bytes, metrics: Sequence[str]) -> None:  # noqa: B027
        """
        Make a service of this process ready for a request, before its timeout begins; others are ready.

        Args:
            metrics: of the request; empty if they are not known.

        Raises:
            NotReadyError: a model cannot be loaded now.
            ScoregateError: it cannot be loaded.
        """

    @abstractmethod
    async def send(self, request: ServiceRequest) -> Reply:
        """
        Return the response to a request, whatever its status.

        Raises:
            ServiceTimeoutError, ServiceConnectionError: there is no response.
        """

    @abstractmethod
    def opened(
        self, request: ServiceRequest
    ) -> AbstractAsyncContextManager[tuple[str, AsyncIterator[bytes]]]:
        """Yield the request's id and the pieces of the response.  Raises its error."""

    async def close(self, address: Address) -> None:  # noqa: B027, most have nothing to close
        """Close the connections to an address."""

    def time(self) -> float:
        """Return the time of deadlines and pauses: that of the running event loop."""
        return asyncio.get_running_loop().time()

    async def pause(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Reply:
    """A complete response, decompressed."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Parse the JSON.  Raises `ScoregateError` if it is not valid, or nested too deeply."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as exc:
            raise ScoregateError(
                f"{self.url} answered {self.status} without JSON", status=self.status
            ) from exc


# --- calls ---


class Connection:
    """
    Connections to services of the same models: pools for each event loop, since connections belong to it.

    A forked process has its own loop, so it never uses its parent's connections.

    Args:
        urls: the services' addresses.
        retries: maximum attempts after the first.  A move to another address is no further attempt.
        transport: sends a request to an address.
        outage: see `Client`.
    """

    def __init__(
        self,
        urls: Sequence[str],
        retries: int,
        transport: Transport,
        outage: Callable[[str], object] | None = None,
    ) -> None:
        self.urls = tuple(urls)
        self._retries, self._transport, self._outage = retries, transport, outage
        self._has_answered = self._is_away = False
        self._pools: dict[asyncio.AbstractEventLoop, list[Address]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Support pickling, without connections."""
        return {**self.__dict__, "_pools": {}}

    @property
    def base_url(self) -> str:
        """The addresses, with commas between them."""
        return ",".join(self.urls)

    async def call(
        self,
        method: str,
        path: str,
        timeout_s: float,
        content: bytes | None = None,
        content_type: str = JSON,
        metrics: Sequence[str] = (),
    ) -> Any:
        """
        Return the JSON of the response.

        Args:
            metrics: of the request, if known here; a service of this process is made ready for them.

        Raises:
            ServiceTimeoutError: *timeout_s* passed; the service may have done some of the work.
            ServiceConnectionError: no attempt got a response of the service.
            ScoregateError: the error of the service; that of the last attempt if it was busy.
        """

        async def answered(address: Address, left: float) -> Any:
            headers = headers_of(left, content_type if content is not None else "")
            request = ServiceRequest(address, path, left, method, content, headers)
            with address.request(self._transport.time):
                reply = await in_time(self._transport.send(request), left, request)
                if reply.status not in SUCCESS_STATUSES:
                    raise failure(reply)
            return reply.json()

        await self._transport.prepare(path, content_type, content or b"", metrics)
        return await self._retried(answered, timeout_s)

    async def lines(
        self, path: str, timeout_s: float, content_type: str, content: bytes
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        """
        POST, and yield each line of the response when it is there, with the request's id.

        The time that the caller spends between two lines does not count for *timeout_s*.

        Raises:
            ServiceTimeoutError, ServiceConnectionError, ScoregateError: as `call`; nothing is retried after
                the first line.
        """
        await self._transport.prepare(path, content_type, content, ())
        clock = self._transport.time
        deadline, rest = clock() + timeout_s, bytearray()
        async with AsyncExitStack() as stack:

            async def opened(
                address: Address, left: float
            ) -> tuple[ServiceRequest, str, AsyncIterator[bytes]]:
                headers = headers_of(left, content_type)
                request = ServiceRequest(address, path, left, "POST", content, headers)
                async with AsyncExitStack() as started:
                    started.enter_context(address.request(clock))
                    opening = started.enter_async_context(self._transport.opened(request))
                    found = await in_time(opening, left, request)
                    address.answered()  # whether or not the caller reads to the last line
                    stack.push_async_exit(started.pop_all())
                    return request, *found

            request, request_id, pieces = await self._retried(opened, timeout_s)
            while piece := await in_time(next_of(pieces), deadline - clock(), request):
                for line in split(rest, piece):
                    left = deadline - clock()
                    yield request_id, line
                    deadline = clock() + left

    async def _retried(self, attempt: Callable[[Address, float], Awaitable[T]], timeout_s: float) -> T:
        """
        Return the result of *attempt*, called with an address and the seconds left.

        After a temporary error, it is called with each other address that is free, and later with all again.
        So at most one attempt has a result.
        """
        clock = self._transport.time
        deadline, retries, addresses = clock() + timeout_s, 0, self._addresses()
        left = [*addresses]
        while True:
            address = choice(left, clock())
            try:
                found = await attempt(address, deadline - clock())
            except ScoregateError as exc:
                if not worth_a_retry(exc):
                    raise
                now = clock()
                left = [each for each in left if each is not address and each.is_free(now)]
                if left:
                    continue
                retries += 1
                wait = max(backoff_s(retries), min(each.busy_until for each in addresses) - now)
                if now + wait >= deadline or (
                    retries > self._retries and not self._outlasts(exc, deadline - now)
                ):
                    raise
            else:
                self._has_answered, self._is_away = True, False
                return found
            await self._transport.pause(wait)
            left = [*addresses]

    def _outlasts(self, error: ScoregateError, left_s: float) -> bool:
        """Return True if calls are retried in an outage, which is reported once."""
        if self._outage is None or not self._has_answered:
            return False
        if not self._is_away:
            self._is_away = True
            self._outage(f"{error.code}: {error.detail}; requests are retried for up to {left_s:.0f} s")
        return True

    async def probe(self, path: str, timeout_s: float) -> tuple[bool, Any]:
        """
        GET once from each address; return whether a status is 200, and the JSON of that response.

        Raises:
            ScoregateError: no address answered.
        """

        async def answer(address: Address) -> tuple[bool, Any]:
            request = ServiceRequest(address, path, timeout_s)
            reply = await in_time(self._transport.send(request), timeout_s, request)
            if reply.status != 200 and problem_of(reply) is None:
                raise failure(reply)
            return reply.status == 200, reply.json()

        answers = await asyncio.gather(*map(answer, self._addresses()), return_exceptions=True)
        found = [each for each in answers if not isinstance(each, BaseException)]
        if not found:
            raise next(each for each in answers if isinstance(each, BaseException))
        return max(found, key=lambda each: each[0])

    async def close(self) -> None:
        """Close the connections of this event loop."""
        for address in self._pools.pop(asyncio.get_running_loop(), ()):
            await self._transport.close(address)

    def _addresses(self) -> list[Address]:
        """Return the addresses of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for other in list(self._pools):
                if other.is_closed():
                    self._pools.pop(other, None)
            self._pools[loop] = [*map(Address, self.urls)]
        return self._pools[loop]


async def in_time(work: Coroutine[Any, Any, T], left: float, url: object) -> T:
    """
    Return the result of *work*.  Raises `ServiceTimeoutError` after *left* seconds.

    A call that is cancelled while its response arrives is cancelled: before Python 3.12, `asyncio.wait_for`
    would return the response, and the call would go on.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=left)
    finally:
        if late := task.cancel():
            await asyncio.gather(task, return_exceptions=True)
    try:
        if late and task.cancelled():
            raise TimeoutError
        return task.result()
    except ScoregateError:  # the work itself raised it; it may be a TimeoutError, too
        raise
    except (asyncio.TimeoutError, TimeoutError):
        raise ServiceTimeoutError(f"no answer from {url} in time") from None


def headers_of(left: float, content_type: str = "") -> dict[str, str]:
    """Return the headers of a request with so many seconds left."""
    headers = {"X-Request-Timeout-Ms": str(of_the_service_ms(left))}
    return headers | {"Content-Type": content_type} if content_type else headers


async def next_of(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the next piece that is not empty; an empty one at the end."""
    async for piece in pieces:
        if piece:
            return piece
    return b""


def split(rest: bytearray, piece: bytes) -> Iterator[bytes]:
    """
    Yield the lines that end in *piece*, the first after the *rest* of earlier pieces, and update the rest.

    Each byte is searched once, however many pieces a line has.
    """
    *lines, last = piece.split(b"\n")
    for line in lines:
        yield bytes(rest + line)
        rest.clear()
    rest += last


def of_the_service_ms(left: float) -> int:
    """Return the service's deadline: a little less than the time left, so that its response arrives."""
    return max(1, min(MAX_TIMEOUT_MS, int(1000 * (left - min(1.0, left / 20)))))


def worth_a_retry(error: ScoregateError) -> bool:
    """Return True if the same request may succeed later."""
    if error.code == CLIENT_CLOSED:
        return False
    return isinstance(error, ServiceConnectionError) or error.status in BUSY_STATUSES


def backoff_s(retry: int) -> float:
    """
    Return the least seconds before a retry: doubled each time, up to `MAX_RETRY_S`.

    Randomized, so that callers that were rejected together do not retry together.
    """
    backoff = min(MAX_RETRY_S, FIRST_RETRY_S * 2.0 ** min(retry - 1, 16))
    return backoff * random.uniform(0.5, 1.5)


# --- addresses, and which of several gets a request ---


@dataclass(eq=False)
class Address:
    """
    An address, and its requests in one event loop.  All times are of one clock.

    Attributes:
        waiting: requests without a complete response.
        busy_until: the end of its last `Retry-After`.
        rests_until: the time until which it gets no request, since the last ones failed.
    """

    url: str
    waiting: int = 0
    busy_until: float = -inf
    rests_until: float = -inf
    _failures: int = 0  # failures in a row
    _failed_at: float = -inf

    def is_free(self, now: float) -> bool:
        """Return True if it is neither busy nor resting."""
        return max(self.busy_until, self.rests_until) <= now

    @contextmanager
    def request(self, clock: Callable[[], float]) -> Iterator[None]:
        """Count a request that is sent in this context, and note whether it fails."""
        sent = clock()
        if self._failures:  # one request finds out whether it is back
            self._rest(sent)
        self.waiting += 1
        try:
            yield
        except ScoregateError as exc:
            self._note(exc, sent, clock())
            raise
        else:
            self.answered()
        finally:
            self.waiting -= 1

    def _note(self, error: ScoregateError, sent: float, now: float) -> None:
        """Note the error of a request that was *sent* then."""
        if error.retry_after_s is not None:
            self.busy_until = max(self.busy_until, now + error.retry_after_s * random.uniform(1.0, 1.25))
        if not isinstance(error, (ServiceConnectionError, ServiceTimeoutError)):
            self.answered()
        elif sent >= self._failed_at and (
            isinstance(error, ServiceConnectionError) or now - sent >= SILENT_S
        ):
            self._failures += 1  # once for all requests that were under way
            self._failed_at = now
            self._rest(now)

    def answered(self) -> None:
        """Note that it works."""
        self._failures, self.rests_until = 0, -inf

    def _rest(self, now: float) -> None:
        rest_s = min(MAX_REST_S, REST_S * 2.0 ** min(self._failures - 1, 16))
        self.rests_until = now + rest_s * random.uniform(1.0, 1.25)


def choice(addresses: Sequence[Address], now: float) -> Address:
    """
    Return the free address with the fewest waiting requests; without a free one, that which is free first.

    Of equal ones one at random, so that many processes do not all begin with the first.
    """
    return min(
        addresses,
        key=lambda each: (
            max(each.busy_until, now),
            max(each.rests_until, now),
            each.waiting,
            random.random(),
        ),
    )


def addresses_of(given: Sequence[str] | str | None) -> list[str]:
    """
    Return services' addresses without a final slash: *given*, those of the environment, or the default.

    Args:
        given: a list, or a text with commas between them.

    Raises:
        ValueError: an address is not valid.  The message has no password in it.
    """
    name = "base_url" if given else VARIABLE
    every = given or os.environ.get(VARIABLE) or DEFAULT
    urls = [*map(normal, every.split(",") if isinstance(every, str) else every)]
    for url in urls:
        if why := fault(url):
            raise ValueError(f"{name} {why}" + ("" if "@" in url else f", and is {url[:200]!r}"))
    return list(dict.fromkeys(urls))


def normal(given: str) -> str:
    """Return an address with its scheme in lower case and without a final slash; `unix:///` as `unix:/`."""
    if is_unix(given.lower()):
        return f"{UNIX}{given[len(UNIX) :].replace('///', '/', 1)}"
    scheme, separator, rest = given.partition("://")
    return f"{scheme.lower()}{separator}{rest.rstrip('/')}"


def is_unix(url: str) -> bool:
    """Return True for the address of a Unix socket."""
    return url.startswith(UNIX)


def socket_of(url: str) -> str:
    """Return the path of a Unix socket from its address."""
    return url[len(UNIX) :]


def fault(url: str) -> str:
    """Return why *url* cannot be the address of a service; empty if it can."""
    if is_unix(url):
        path = socket_of(url)
        if not path.startswith("/") or path.startswith("//") or not path.isprintable():
            return "must name an absolute path after unix:, as in unix:/run/scoregate.sock"
        long = len(os.fsencode(path)) > MAX_SOCKET_BYTES
        return f"must have a path of at most {MAX_SOCKET_BYTES} bytes" if long else ""
    if not url.startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if " " in url or not url.isprintable():
        return "must not have spaces or line breaks"
    if "?" in url or "#" in url:
        return "must not have a query or a fragment"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "is not a valid address"
    if parsed.userinfo:
        return "must not have a user or a password"
    if not parsed.host:
        return "must name a host"
    return "" if parsed.port is None or 0 < parsed.port < 2**16 else "must have a port from 1 to 65535"


def api_key_of(given: str | None) -> str:
    """
    Return the key: *given*, that of the environment, or an empty one.

    Raises:
        ValueError: a header cannot hold the key.  The message does not quote it.
    """
    name = "SCOREGATE_API_KEY" if given is None else "api_key"
    key = os.environ.get(name, "") if given is None else given
    if key and not KEY.fullmatch(key):
        raise ValueError(f"{name} must have visible ASCII characters only, no spaces and no line break")
    return key


# --- calls with a fallback, which are not sent while the service is away ---


MAX_FAILURES = 5  # after so many failures in a row, calls with a fallback are no longer sent
TRIAL_S = 1.0  # seconds between two calls that try whether the service is back


class CircuitOpenError(Exception):
    """The last calls failed, and none is sent now."""


class Breaker:
    """
    The failures in a row of a client's calls with a fallback.

    After `MAX_FAILURES` one call in `TRIAL_S` is sent, until one succeeds.  Threads and event loops share it.

    Args:
        clock: returns seconds, that of the client's transport.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, Lock()
        self._failures, self._last, self._sent_from = 0, "", 0.0

    def __reduce__(self) -> tuple[Any, ...]:
        return Breaker, (self._clock,)  # the calls of another process did not fail

    def check(self) -> None:
        """Return if a call is to be sent now.  Raises `CircuitOpenError`."""
        with self._lock:
            if self._failures < MAX_FAILURES:
                return
            now = self._clock()
            if now < self._sent_from:
                raise CircuitOpenError(f"the last {self._failures} calls failed: {self._last}")
            self._sent_from = now + TRIAL_S

    def failed(self, why: str) -> None:
        """Count a failure."""
        with self._lock:
            self._failures, self._last = self._failures + 1, why
            if self._failures == MAX_FAILURES:
                self._sent_from = self._clock() + TRIAL_S

    def succeeded(self) -> None:
        """Note an answer of the service."""
        with self._lock:
            self._failures = 0
