"""Connections whose hosts must come to the body of an answer."""

import ssl
from typing import Any

import httpcore

# Of a head, with interim responses (103 and other 1xx), which httpcore reads without a limit of its own.
MAX_HEAD_BYTES = 32 * 2**10


class BoundedHeads(httpcore.AsyncNetworkBackend):
    """Opens connections as *network* does, and bounds what is read of each answer's head."""

    def __init__(self, network: httpcore.AsyncNetworkBackend) -> None:
        self._network = network

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        """Return a connection.  Raises what the network raises."""
        return Wire(await self._network.connect_tcp(*args, **options))


class Wire(httpcore.AsyncNetworkStream):
    """A connection; a request that is written on it begins a new head."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._head_left: int | None = None  # bytes; None while a body is read

    def head_ended(self) -> None:
        """Read what follows without this limit."""
        self._head_left = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (httpcore's)
        """Return what comes next.  Raises `httpcore.RemoteProtocolError` if a head does not end."""
        if self._head_left is None:
            return await self._stream.read(max_bytes, timeout)
        if not self._head_left:
            raise httpcore.RemoteProtocolError("the head of the response does not end")
        data = await self._stream.read(min(max_bytes, self._head_left), timeout)
        self._head_left -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (httpcore's)
        """Send a part of a request."""
        self._head_left = MAX_HEAD_BYTES
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        """Return the connection with TLS on it."""
        return Wire(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """Return what the connection underneath has of that name."""
        return self._stream.get_extra_info(info)
