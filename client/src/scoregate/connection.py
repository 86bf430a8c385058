"""Calls with timeouts, retries and failover."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from scoregate.addresses import Address, choice
from scoregate.errors import ScoregateError, ServiceConnectionError
from scoregate.http import httpx
from scoregate.replies import failure, problem_of
from scoregate.transports import Transport, in_time

T = TypeVar("T")
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
        transport: sends a request to an address.
    """

    def __init__(self, urls: Sequence[str], retries: int, transport: Transport) -> None:
        self.urls = tuple(urls)
        self._retries, self._transport = retries, transport
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
            ServiceTimeoutError: *timeout_s* passed; the service may have done some of the work.
            ServiceConnectionError: no attempt got a response of the service.
            ScoregateError: the error of the service; that of the last attempt if it was busy.
        """

        async def answered(address: Address, left: float) -> Any:
            headers = headers_of(left, content_type if content is not None else "")
            with address.request(asyncio.get_running_loop().time):
                reply = await self._transport.send(address, method, path, left, content, headers)
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
            ServiceTimeoutError, ServiceConnectionError, ScoregateError: as `call`; nothing is retried after
                the first line.
        """
        clock = asyncio.get_running_loop().time
        deadline, rest = clock() + timeout_s, bytearray()
        async with AsyncExitStack() as stack:

            async def opened(address: Address, left: float) -> tuple[str, str, AsyncIterator[bytes]]:
                url = f"{address.url}{path}"
                async with AsyncExitStack() as started:
                    started.enter_context(address.request(clock))
                    opening = self._transport.opened(
                        address, path, left, content, headers_of(left, content_type)
                    )
                    found = await in_time(started.enter_async_context(opening), left, url)
                    address.answered()  # whether or not the caller reads to the last line
                    stack.push_async_exit(started.pop_all())
                    return url, *found

            url, request_id, pieces = await self._retried(opened, timeout_s)
            while piece := await in_time(next_of(pieces), deadline - clock(), url):
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
            reply = await self._transport.send(address, "GET", path, timeout_s, None, {})
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
            for other in [other for other in list(self._pools) if other.is_closed()]:
                self._pools.pop(other, None)
            self._pools[loop] = [Address(url) for url in self.urls]
        return self._pools[loop]


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
    return max(1, min(LONGEST_MS, int(1000 * (left - min(1.0, left / 20)))))


def worth_a_retry(error: ScoregateError) -> bool:
    """Return True if the same request may succeed later."""
    return isinstance(error, ServiceConnectionError) or error.status in BUSY


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
