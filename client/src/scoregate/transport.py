"""Ways to services: the contract, over HTTP within limits, and to a service of this process."""

from __future__ import annotations

import asyncio
import json
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from scoregate.addresses import Address, is_unix, socket_of
from scoregate.errors import (
    ScoregateError,
    ServiceConnectionError,
    ServiceTimeoutError,
    error_of,
    reason_of,
)
from scoregate.http import httpx

CONNECT_S = 10.0  # seconds for one attempt to connect
IDLE_S = 30.0  # less than the service's 75 s, so that the client closes an idle connection
MAX_BYTES = 32 * 2**20  # bytes of an answer, decompressed; one about 128 items with all details has a few MB
ENCODING = "gzip"  # the only one accepted, since it can be decompressed incrementally
GZIP = 16 + zlib.MAX_WBITS
PROXY_STATUSES = (429, 502, 503, 504)  # a response without a code of the service did not reach it
IN_PROCESS = "http://in-process"  # the address of a service of this process

Prepare = Callable[[str, str, bytes, Sequence[str]], Awaitable[None]]
Exchange = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Any]]


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
    """
    A way to services: over HTTP, or to one of this process.

    Attributes:
        prepare: makes a service of this process ready for a request, by its path, content type, content, and
            metrics if they are known; the timeout begins afterwards.  It raises `NotReadyError` if a model
            cannot be loaded now, and another `ScoregateError` if it cannot be loaded.
    """

    prepare: Prepare | None = None

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


# --- replies, and the errors that they are ---


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


def failure(reply: Reply) -> ScoregateError:
    """Return the error of a response; `ServiceConnectionError` for an error page of a proxy."""
    request_id = reply.headers.get("x-request-id", "")
    error = error_of(problem_of(reply) or foreign_problem(reply), status=reply.status, request_id=request_id)
    if error.retry_after_s is None:
        error.retry_after_s = retry_after_s(reply.headers)
    return error


def foreign_problem(reply: Reply) -> Mapping[str, Any]:
    """Return a problem for the response of another program, such as a proxy."""
    if reply.status in PROXY_STATUSES:
        code, detail = ServiceConnectionError.code, f"a proxy answered {reply.status} in place of {reply.url}"
    else:
        code, detail = ScoregateError.code, f"HTTP {reply.status} from {reply.url}, not in the service's form"
    return {"code": code, "detail": detail}


def problem_of(reply: Reply) -> Mapping[str, Any] | None:
    """Return the problem in a response of the service; None for the response of another program."""
    try:
        content = reply.json()
    except ScoregateError:
        return None
    ours = isinstance(content, dict) and "detail" in content and isinstance(content.get("code"), str)
    return content if ours else None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header `Retry-After`; dates are ignored, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None


# --- over HTTP ---


class HttpTransport(Transport):
    """
    Requests over HTTP.

    Args:
        urls: the services' addresses.
        max_connections: to each address.
        transport: of httpx2, in place of the own one.
    """

    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        max_connections: int,
        transport: httpx.AsyncBaseTransport | None,
    ) -> None:
        self._headers = {"Accept-Encoding": ENCODING}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
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

    async def close(self, address: Address) -> None:
        if address.http is not None:
            await address.http.aclose()

    async def send(self, request: ServiceRequest) -> Reply:
        async with self._sent(request) as response:
            return await reply_of(response, str(request))

    @asynccontextmanager
    async def opened(self, request: ServiceRequest) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """Yield the request's id and the pieces of the response.  Raises its error."""
        async with self._sent(request) as response:
            if response.status_code != 200:
                raise failure(await reply_of(response, str(request)))
            yield response.headers.get("x-request-id", ""), pieces_of(response, str(request))

    @asynccontextmanager
    async def _sent(self, request: ServiceRequest) -> AsyncIterator[httpx.Response]:
        """Yield a response whose content has not been read; raise our errors in place of httpx2's."""
        address, left = request.address, request.left
        timeout = httpx.Timeout(max(left, 0.001), connect=max(min(left, CONNECT_S), 0.001))
        http = address.http = address.http or self._pool(address.url)
        sent = http.stream(
            request.method, request.path, content=request.content, headers=request.headers, timeout=timeout
        )
        try:
            async with sent as response:
                yield response
        except httpx.ConnectTimeout:
            raise ServiceConnectionError(
                f"cannot connect to {address.url} within {timeout.connect:.0f} s"
            ) from None
        except httpx.TimeoutException:
            raise ServiceTimeoutError(f"no answer from {request} in time") from None
        except httpx.RequestError as exc:
            raise ServiceConnectionError(f"{address.url}: {reason_of(exc)}") from None

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


async def reply_of(response: httpx.Response, url: str) -> Reply:
    """
    Read the rest of a response from *url*.

    Raises:
        ScoregateError: it is longer than `MAX_BYTES`, or has another content encoding than `ENCODING`.
        httpx2.RequestError: the connection broke.
    """
    content = bytearray()
    async for piece in pieces_of(response, url):
        content += piece
    return Reply(url, response.status_code, response.headers, bytes(content))


async def pieces_of(response: httpx.Response, url: str) -> AsyncIterator[bytes]:
    """Yield the rest of a response in pieces as they come, decompressed.  Raises as `reply_of`."""
    size, pieces = 0, unpacked(response)
    try:
        async for piece in pieces:
            size += len(piece)
            check_size(size)
            yield piece
    except (ValueError, zlib.error) as exc:
        status = response.status_code
        raise ScoregateError(
            f"cannot read what {url} answered: {exc}",
            status=status,
            request_id=response.headers.get("x-request-id", ""),
        ) from exc


async def unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield pieces of at most one byte more than `MAX_BYTES`.  Raises `ValueError` and `zlib.error`."""
    if response.is_stream_consumed:  # a transport for tests has read and decompressed it
        yield response.content
        return
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in (ENCODING, "identity"):
        raise ValueError(f"the content encoding {encoding[:40]!r} is not accepted")
    unpacker = zlib.decompressobj(GZIP)
    async for piece in response.aiter_raw():
        yield unpacker.decompress(piece, MAX_BYTES + 1) if encoding == ENCODING else piece


def check_size(size: int) -> None:
    """Raise `ValueError` for more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")


# --- to a service of this process ---


class InProcessTransport(Transport):
    """
    Requests to a service of this process.

    Args:
        exchange: returns the status, the headers and the content of the response to a request.
        prepare: as of `Transport`; None if all models are loaded.
    """

    def __init__(self, exchange: Exchange, prepare: Prepare | None) -> None:
        self._exchange, self.prepare = exchange, prepare

    async def send(self, request: ServiceRequest) -> Reply:
        method, path, content = request.method, request.path, request.content or b""
        answer = await self._exchange(method, path, request.headers, content)
        return Reply(f"{IN_PROCESS}{path}", answer.status, answer.headers, answer.content)

    @asynccontextmanager
    async def opened(self, request: ServiceRequest) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """Yield the whole response as one piece: in this process nothing is sent in parts."""
        reply = await self.send(request)
        if reply.status != 200:
            raise failure(reply)

        async def whole() -> AsyncIterator[bytes]:
            yield reply.content

        yield reply.headers.get("x-request-id", ""), whole()
