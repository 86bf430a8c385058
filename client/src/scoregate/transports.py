"""Transports: the ways of a request to a service.  Responses are read and decompressed within limits."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from scoregate.addresses import Address, is_unix, socket_of
from scoregate.errors import ServiceConnectionError, ServiceTimeoutError, reason_of
from scoregate.http import httpx
from scoregate.replies import ENCODING, Reply, failure, pieces_of, reply_of

T = TypeVar("T")
CONNECT_S = 10.0  # for one attempt to connect
IDLE_S = 30.0  # of an idle connection; less than the service's 75 s, so that the client closes it
KEY = re.compile(r"[!-~]+")


class Transport(ABC):
    """A way to services: over HTTP, or to one of this process."""

    @abstractmethod
    async def send(
        self,
        address: Address,
        method: str,
        path: str,
        left: float,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> Reply:
        """
        Return the response to a request, whatever its status.

        Args:
            left: seconds that are left.

        Raises:
            ServiceTimeoutError, ServiceConnectionError: there is no response.
        """

    @abstractmethod
    def opened(
        self, address: Address, path: str, left: float, content: bytes, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[tuple[str, AsyncIterator[bytes]]]:
        """POST, and yield the request's id and the pieces of the response.  Raises its error."""

    async def close(self, address: Address) -> None:  # noqa: B027, most have nothing to close
        """Close the connections to an address."""


class HttpTransport(Transport):
    """
    Requests over HTTP.

    Args:
        urls: the services' addresses.
        max_connections: to each address.
        transport: of httpx2, in place of the own one.
    """

    def __init__(self, urls: Sequence[str], api_key: str, max_connections: int, transport: Any) -> None:
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

    async def send(
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

        return await in_time(exchanged(), left, f"{address.url}{path}")

    @asynccontextmanager
    async def opened(
        self, address: Address, path: str, left: float, content: bytes, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[str, AsyncIterator[bytes]]]:
        """POST, and yield the request's id and the pieces of the response.  Raises its error."""
        async with self._sent(address, "POST", path, left, content, headers) as response:
            if response.status_code != 200:
                raise failure(await reply_of(response, f"{address.url}{path}"))
            pieces = pieces_of(response, f"{address.url}{path}")
            yield response.headers.get("x-request-id", ""), pieces

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
            raise ServiceConnectionError(
                f"cannot connect to {address.url} within {timeout.connect:.0f} s"
            ) from None
        except httpx.TimeoutException:
            raise ServiceTimeoutError(f"no answer from {address.url}{path} in time") from None
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


async def in_time(work: Coroutine[Any, Any, T], left: float, url: str) -> T:
    """Return the result of *work*.  Raises `ServiceTimeoutError` after *left* seconds."""
    try:
        return await asyncio.wait_for(work, left)
    except ServiceTimeoutError:  # of the work itself
        raise
    except (asyncio.TimeoutError, TimeoutError):
        raise ServiceTimeoutError(f"no answer from {url} in time") from None


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
