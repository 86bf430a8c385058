"""Connections for downloads: to public addresses only, with bounded heads of answers."""

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpcore

from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.sharing import SingleFlight
from service.core.errors import UrlNotAllowed

Resolve = Callable[[str, int], Awaitable[list[str]]]

# A name server that does not answer blocks a thread for many seconds.  The event loop's default threads parse
# requests, so names have threads of their own.  Concurrent look-ups of one name are shared.
LOOKUPS = FairThreads(64, "names")

Address = IPv4Address | IPv6Address

NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")

# Networks that some versions of the standard library count as public.
NOT_PUBLIC: list[IPv4Network | IPv6Network] = [
    IPv4Network("168.63.129.16/32"),  # metadata of a cloud
    IPv4Network("192.0.0.0/24"),  # between networks of one provider
    IPv4Network("192.88.99.0/24"),  # relays into tunnels
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing, within one network
    IPv6Network("fec0::/10"),  # site-local
]

# Of a head, with interim responses (103 and other 1xx), which httpcore reads without a limit of its own.
MAX_HEAD_BYTES = 32 * 2**10


def is_public(text: str) -> bool:
    """
    Return True if *text* is an address of the public internet.

    False for private, loopback, link-local, multicast, reserved and unspecified addresses, for those of a
    cloud's metadata, and for IPv6 addresses that contain any of these.
    """
    return all(
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in NOT_PUBLIC)
        for address in carried(ip_address(text))
    )


def carried(address: Address) -> list[Address]:
    """Return the address, or the IPv4 address that it maps to, and the addresses that it tunnels to."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address in NAT64:
        return [IPv4Address(int(address) & 0xFFFF_FFFF)]
    found: list[Address] = [address]
    if address in COMPATIBLE:
        found.append(IPv4Address(int(address)))
    if address.sixtofour:
        found.append(address.sixtofour)
    if address.teredo:
        found += address.teredo
    return found


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses of *host* by the system's resolver.  Raises `OSError`."""
    found = await LOOKUPS.run(partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM))
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class PublicNetwork(httpcore.AsyncNetworkBackend):
    """
    Resolves each name once, so that connections go to the addresses that were checked.

    The request keeps the name, for the header `Host` and for TLS.
    """

    def __init__(self, resolve: Resolve = resolve, allowed: Callable[[str], bool] = is_public) -> None:
        self._resolve, self._allowed = resolve, allowed
        self._lookups: SingleFlight[list[str]] = SingleFlight()
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """
        Connect to the first address that accepts.

        Raises:
            UrlNotAllowed: one of the host's addresses is not public.
            httpcore.ConnectError: the host has no address, or none accepts.
        """
        try:
            addresses, _ = await self._lookups.do((host, port), partial(self._resolve, host, port))
        except (OSError, UnicodeError) as exc:  # UnicodeError: not a valid name
            raise httpcore.ConnectError("no such host") from exc
        if not all(map(self._allowed, addresses)):
            raise UrlNotAllowed("the host has an address that is not public")
        for address in addresses:
            try:
                return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        raise httpcore.ConnectError("no address of the host accepts the connection")


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
