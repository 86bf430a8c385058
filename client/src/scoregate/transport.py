"""Requests over HTTP: limits, answers as they come, and our errors in place of the library's."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar
from weakref import WeakKeyDictionary

from scoregate.connection import Address, Reply, ServiceRequest, Transport, is_unix, socket_of
from scoregate.errors import ScoregateError, ServiceConnectionError, ServiceTimeoutError, reason_of
from scoregate.http import failure, httpx

CONNECT_S = 10.0  # seconds for one attempt to connect
IDLE_S = 30.0  # less than the service's 75 s, so that the client closes an idle connection
MAX_BYTES = 32 * 2**20  # bytes of an answer, decompressed; one about 128 items with all details has a few MB
ENCODING = "gzip"  # the only one accepted, since it can be decompressed incrementally
GZIP_WBITS = 16 + zlib.MAX_WBITS


class HttpTransport(Transport):
    """
    Requests over HTTP.

    Args:
        urls: the services' addresses.
        max_connections: to each address.
        transport: of httpx2, in place of the own one.
    """

    # Those of an address of any instance, until it is collected; an instance could not be pickled with them.
    _pools: ClassVar[WeakKeyDictionary[Address, httpx.AsyncClient]] = WeakKeyDictionary()

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
        if pool := self._pools.pop(address, None):
            await pool.aclose()

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
        pool = self._pools.get(address)
        if pool is None:
            pool = self._pools[address] = self._new_pool(address.url)
        sent = pool.stream(
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

    def _new_pool(self, url: str) -> httpx.AsyncClient:
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
    unpacker = zlib.decompressobj(GZIP_WBITS)
    async for piece in response.aiter_raw():
        yield unpacker.decompress(piece, MAX_BYTES + 1) if encoding == ENCODING else piece


def check_size(size: int) -> None:
    """Raise `ValueError` for more than `MAX_BYTES`."""
    if size > MAX_BYTES:
        raise ValueError(f"it is longer than {MAX_BYTES} bytes")
