"""HTTP calls with timeouts, retries and failover; responses are read and decompressed within limits."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from scoregate.addresses import Address, choice, is_unix, socket_of
from scoregate.errors import ConnectionFailed, ScoregateError, Timeout, reason_of
from scoregate.http import httpx
from scoregate.replies import ENCODING, MAX_BYTES, Reply, failure, problem_of, reply_of

T = TypeVar("T")
CONNECT_S = 10.0  # for one attempt to connect
IDLE_S = 30.0  # of an idle connection; less than the service's 75 s, so that the client closes it
KEY = re.compile(r"[!-~]+")
LONGEST_MS = 600_000  # maximum that the service accepts

FIRST_S = 0.1  # before the first retry, doubled for each further one
BUSY = (429, 503)


class Connection:
    """
    Connections to services of the same models: pools for each event loop, since connections belong to it.

    A forked process has its own loop, so it never uses its parent's connections.

    Args:
        urls: the services' addresses.
        retries: maximum attempts after the first.  A move to another address is no further attempt.
        max_connections: to each address.
        transport: of httpx2, in place of the own one.
    """

    def __init__(
        self, urls: Sequence[str], api_key: str, retries: int, max_connections: int, transport: Any
    ) -> None:
        self.urls = tuple(urls)
        self._headers = {"Accept-Encoding": ENCODING}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._retries = retries
        self._limits = httpx.Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=IDLE_S,
        )
        if transport is not None and not isinstance(transport, httpx.AsyncBaseTransport):
            kind = type(transport)
            raise TypeError(f"transport must be of httpx2, and is a {kind.__module__}.{kind.__qualname__}")
        if transport is not None and any(map(is_unix, urls)):
            raise ValueError("a unix: address has a transport of its own")
        self._transport = transport
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
        content_type: str = "application/json",
    ) -> Any:
        """
        Return the JSON of the response.

        Raises:
            Timeout: *timeout_s* passed; the service may have done some of the work.
            ConnectionFailed: no attempt got a response of the service.
            ScoregateError: the error of the service; that of the last attempt if it was busy.
        """

        async def answered(address: Address, left: float) -> Any:
            headers = headers_of(left, content_type if content is not None else "")
            with address.request(asyncio.get_running_loop().time):
                reply = await self._send(address, method, path, left, content, headers)
                if reply.status != 200:
                    raise failure(reply)
            return reply.json()

        return await self._retried(answered, timeout_s)

    async def lines(
        self, path: str, timeout_s: float, content_type: str, content: bytes
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        """
        POST, and yield each line of the response when it is there, with the request's id.

        The time that the caller spends between two lines does not count for *timeout_s*.

        Raises:
            Timeout, ConnectionFailed, ScoregateError: as `call`; after the first line nothing is retried.
        """
        clock = asyncio.get_running_loop().time
        deadline, size, rest = clock() + timeout_s, 0, b""
        async with AsyncExitStack() as stack:

            async def opened(address: Address, left: float) -> tuple[str, str, AsyncIterator[bytes]]:
                url = f"{address.url}{path}"
                async with AsyncExitStack() as started:
                    started.enter_context(address.request(clock))
                    opening = self._opened(address, path, left, content, headers_of(left, content_type))
                    found = await self._in_time(started.enter_async_context(opening), left, url)
                    address.answered()  # whether or not the caller reads to the last line
                    stack.push_async_exit(started.pop_all())
                    return url, *found

            url, request_id, pieces = await self._retried(opened, timeout_s)
            while piece := await self._in_time(next_of(pieces), deadline - clock(), url):
                size += len(piece)
                if size > MAX_BYTES:
                    raise ScoregateError(
                        f"{path} answered more than {MAX_BYTES} bytes", request_id=request_id
                    )
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    left = deadline - clock()
                    yield request_id, line
                    deadline = clock() + left

    async def _retried(self, attempt: Callable[[Address, float], Awaitable[T]], timeout_s: float) -> T:
        """
        Return the result of *attempt*, called with an address and the seconds left.

        After a temporary error, it is called with each other address that is free, and later with all again.
        So at most one attempt has a result.
        """
        clock = asyncio.get_running_loop().time
        deadline, retries, addresses = clock() + timeout_s, 0, self._addresses()
        left = [*addresses]
        while True:
            address = choice(left, clock())
            try:
                return await attempt(address, deadline - clock())
            except ScoregateError as exc:
                if not worth_a_retry(exc):
                    raise
                now = clock()
                left = [each for each in left if each is not address and each.is_free(now)]
                if left:
                    continue
                retries += 1
                wait = max(backoff_s(retries), min(each.busy_until for each in addresses) - now)
                if retries > self._retries or now + wait >= deadline:
                    raise
            await asyncio.sleep(wait)
            left = [*addresses]

    async def probe(self, path: str, timeout_s: float) -> tuple[bool, Any]:
        """
        GET once from each address; return whether a status is 200, and the JSON of that response.

        Raises:
            ScoregateError: no address answered.
        """

        async def answer(address: Address) -> tuple[bool, Any]:
            reply = await self._send(address, "GET", path, timeout_s, None, {})
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
            if address.http is not None:
                await address.http.aclose()

    async def _send(
        self,
        address: Address,
        method: str,
        path: str,
        left: float,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> Reply:
        async def exchanged() -> Reply:
            async with self._sent(address, method, path, left, content, headers) as response:
                return await reply_of(response, f"{address.url}{path}")

        return await self._in_time(exchanged(), left, f"{address.url}{path}")

    async def _in_time(self, work: Coroutine[Any, Any, T], left: float, url: str) -> T:
        """Return the result of *work*.  Raises `Timeout` after *left* seconds."""
        try:
            return await asyncio.wait_for(work, left)
        except (asyncio.TimeoutError, TimeoutError):
            raise Timeout(f"no answer from {url} in time") from None

    @asynccontextmanager
    async def _opened(
        self, address: Address, path: str, left: float, content: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """POST, and yield the request's id and the pieces of the response.  Raises its error."""
        async with self._sent(address, "POST", path, left, content, headers) as response:
            if response.status_code != 200:
                raise failure(await reply_of(response, f"{address.url}{path}"))
            yield response.headers.get("x-request-id", ""), response.aiter_bytes()

    @asynccontextmanager
    async def _sent(
        self,
        address: Address,
        method: str,
        path: str,
        left: float,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> AsyncIterator[httpx.Response]:
        """Yield a response whose content has not been read; raise our errors in place of httpx2's."""
        timeout = httpx.Timeout(max(left, 0.001), connect=max(min(left, CONNECT_S), 0.001))
        http = address.http = address.http or self._pool(address.url)
        sent = http.stream(method, path, content=content, headers=headers, timeout=timeout)
        try:
            async with sent as response:
                yield response
        except httpx.ConnectTimeout:
            raise ConnectionFailed(
                f"cannot connect to {address.url} within {timeout.connect:.0f} s"
            ) from None
        except httpx.TimeoutException:
            raise Timeout(f"no answer from {address.url}{path} in time") from None
        except httpx.RequestError as exc:
            raise ConnectionFailed(f"{address.url}: {reason_of(exc)}") from None

    def _addresses(self) -> list[Address]:
        """Return the addresses of this event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            for other in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(other, None)
            self._pools[loop] = [Address(url) for url in self.urls]
        return self._pools[loop]

    def _pool(self, url: str) -> httpx.AsyncClient:
        transport = self._transport
        if is_unix(url):
            transport = httpx.AsyncHTTPTransport(uds=socket_of(url), limits=self._limits, verify=False)
        return httpx.AsyncClient(
            base_url="http://localhost" if is_unix(url) else url,
            headers=self._headers,
            limits=self._limits,
            transport=transport,
            trust_env=False,  # no proxy and no .netrc of the environment
            verify=url.startswith("https"),  # reading certificates takes 30 ms
        )


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


def of_the_service_ms(left: float) -> int:
    """Return the service's deadline: a little less than the time left, so that its response arrives."""
    return max(1, min(LONGEST_MS, int(1000 * (left - min(1.0, left / 20)))))


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


def worth_a_retry(error: ScoregateError) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(error, ConnectionFailed) or error.status in BUSY


def backoff_s(retry: int) -> float:
    """
    Return the least seconds before a retry: doubled each time.

    Randomized, so that callers that were rejected together do not retry together.
    """
    backoff: float = FIRST_S * 2 ** (retry - 1) * random.uniform(0.5, 1.5)
    return backoff


def form(request: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[str, bytes]:
    """
    Return the content type and the body: *request* as JSON in the part `request`, then the files.

    The body is joined here, since httpx2 would write each part to the socket separately: for 32 small files,
    the writes would take 6 ms of the event loop, and one write takes 1 ms.

    Raises:
        ValueError: a number of the request is not finite.
        TypeError: a value of the request is not JSON.
    """
    content = json.dumps(request, allow_nan=False).encode()
    parts: dict[str, Any] = {"request": (None, content, "application/json")}
    parts |= {name: (name, data) for name, data in files.items()}
    built = httpx.Request("POST", "", files=parts)
    return built.headers["Content-Type"], built.read()
