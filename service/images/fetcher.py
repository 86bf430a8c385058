"""Download of images from hosts that the operator allows: to public addresses only, within limits."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import httpcore

from service import __version__
from service.core.concurrency.budget import Budget, ByteBudget, Portion, Share
from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.sharing import SingleFlight
from service.core.errors import ImageTooLarge, UrlFailed, UrlNotAllowed
from service.core.http import httpx
from service.core.settings.sections import Images, is_listed

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
    IPv4Network("192.0.0.0/24"),  # links between networks of one provider
    IPv4Network("192.88.99.0/24"),  # relays into tunnels
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing, within one network
    IPv6Network("fec0::/10"),  # site-local
]

# A head includes interim responses (103 and other 1xx), which httpcore reads without a limit of its own.
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


MAX_FETCHES = 64
MAX_BULK = 32  # interactive requests never wait for bulk ones
MAX_PER_HOST = 16  # a host that hangs delays no other host
MAX_PER_CALLER = 16  # a caller whose hosts hang delays no other caller
MAX_REDIRECTS = 3
REDIRECTS = {301, 302, 303, 307, 308}
LARGEST_HELD = 8  # images of the largest size in memory together
LARGEST_URGENT = 2  # interactive requests alone may have so many more

# Reading a chunk costs the event loop as much as some thousand bytes.
MAX_SMALL_PARTS = 256
LEAST_PART_BYTES = 64  # mean size that all further chunks must have

# Without a content encoding nothing has to be decompressed.
HEADERS = [
    ("Accept", "image/*"),
    ("Accept-Encoding", "identity"),
    ("User-Agent", f"scoregate/{__version__}"),
]


class NoRoom(Exception):
    """There is no memory for the next bytes; the download holds none any more."""


class Room:
    """
    Memory from two budgets: that of downloads, and that of all requests.

    Attributes:
        urgent: True for an interactive request.
    """

    def __init__(self, downloads: Budget, share: Share, urgent: bool) -> None:
        self._downloads, self._share, self.urgent = downloads, share, urgent
        self._portion: Portion | None = None
        self._held = 0

    def grow(self, size: int) -> None:
        """
        Hold *size* bytes at least.

        Raises:
            NoRoom: the budget of downloads is used up for now.
            MemoryFull: the budget of all requests is used up.
        """
        self._share.grow(max(0, size - self._share.size))
        if size <= self._held:
            return
        taken = self._downloads.take_now(size - self._held, self.urgent)
        if taken is None:
            self.shrink(0)
            raise NoRoom
        self._portion, self._held = taken, size

    async def take(self, size: int) -> None:
        """Wait for *size* bytes of the budget of downloads, and hold them."""
        self._portion = await self._downloads.take(size, self.urgent)
        self._held = size

    def shrink(self, size: int) -> None:
        """Hold *size* bytes at most."""
        self._share.shrink(max(0, self._share.size - size))
        if self._portion and self._held > size:
            self._portion.give_back(self._held - size)
            self._held = size


@contextmanager
def room(downloads: Budget, memory: ByteBudget, urgent: bool) -> Iterator[Room]:
    """Return memory for one download, given back on exit."""
    with Share(memory) as share:
        held = Room(downloads, share, urgent)
        try:
            yield held
        finally:
            held.shrink(0)


@cache
def trusted() -> ssl.SSLContext:
    """Return the system's certificates, read once per process, which takes 30 ms."""
    return ssl.create_default_context()


class Fetcher:
    """
    Downloads images, without cookies, without a proxy, and with nothing of the caller's request.

    Args:
        memory: shared by downloads and request bodies.
        network: opens connections; only to public addresses by default.
    """

    def __init__(
        self, limits: Images, memory: ByteBudget, network: httpcore.AsyncNetworkBackend | None = None
    ) -> None:
        self._limits, self._memory = limits, memory
        self._slots = Budget(
            MAX_FETCHES, MAX_FETCHES - MAX_BULK, per_caller=MAX_PER_CALLER, per_key=MAX_PER_HOST
        )
        self._budget = Budget(
            (LARGEST_HELD + LARGEST_URGENT) * limits.max_bytes, LARGEST_URGENT * limits.max_bytes
        )
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trusted(),
            max_connections=MAX_FETCHES,
            network_backend=BoundedHeads(network or PublicNetwork()),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    @asynccontextmanager
    async def open(self, url: str, urgent: bool) -> AsyncIterator[bytes]:
        """
        Return the bytes at *url*, whose memory is reserved while the context is open.

        Memory is reserved as bytes arrive.  If it does not suffice, the download drops its bytes and begins
        again when there is memory for the largest image: two downloads that wait for each other would
        deadlock.

        Raises:
            UrlNotAllowed: the host, or one that it redirects to, is not allowed or has no public address.
            UrlFailed: the host does not answer, or not with an image.
            ImageTooLarge: there are more than `images.max_bytes`.
            MemoryFull: all requests together hold too much already.
        """
        first = self._checked(parsed(url))
        with room(self._budget, self._memory, urgent) as held:
            try:
                encoded = await self._fetched(first, held)
            except NoRoom:
                await held.take(self._limits.max_bytes)
                encoded = await self._fetched(first, held)
            held.shrink(len(encoded))
            yield encoded

    async def _fetched(self, url: httpx.URL, held: Room) -> bytes:
        """Return the bytes at *url*.  Raises `NoRoom` and the errors of `open`."""
        async with self._slots.hold(1, held.urgent, url.host):  # the timeout begins with the connection
            try:
                async with asyncio.timeout(self._limits.url_timeout_s):
                    return await self._followed(url, held)
            except TimeoutError:
                raise UrlFailed(f"it took more than {self._limits.url_timeout_s:g} seconds") from None
            except (httpcore.NetworkError, httpcore.ProtocolError):
                raise UrlFailed("the host cannot be reached, or broke off") from None

    async def _followed(self, url: httpx.URL, held: Room) -> bytes:
        for _ in range(1 + MAX_REDIRECTS):
            async with self._pool.stream("GET", core(url), headers=HEADERS) as response:
                response.extensions["network_stream"].head_ended()
                headers = httpx.Headers(response.headers)
                if response.status not in REDIRECTS:
                    return await self._body(response, headers, held)
                url = self._checked(parsed(headers.get("location", ""), url))
        raise UrlFailed(f"the host redirects more than {MAX_REDIRECTS} times")

    def _checked(self, url: httpx.URL) -> httpx.URL:
        """Return *url*.  Raises `UrlNotAllowed` if its host is not allowed."""
        host = url.raw_host.decode("ascii")
        listed = self._limits.allowed_url_hosts
        if url.userinfo or not is_listed(listed, url.scheme, host, url.port):
            raise UrlNotAllowed("this server does not download images from that host")
        return url

    async def _body(self, response: httpcore.Response, headers: httpx.Headers, held: Room) -> bytes:
        """Return the body.  Raises `NoRoom`, `UrlFailed` or `ImageTooLarge`."""
        if response.status != 200:
            raise UrlFailed(f"the host returned status {response.status}")
        if headers.get("content-encoding", "identity") != "identity":
            raise UrlFailed("the host sent the image with a Content-Encoding, against the request")
        most, declared = self._limits.max_bytes, headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > most:
            raise ImageTooLarge(f"{declared} bytes; at most {most}")
        encoded, parts = bytearray(), 0
        async for part in response.aiter_stream():
            encoded += part
            parts += 1
            if len(encoded) > most:
                raise ImageTooLarge(f"more than {most} bytes")
            if parts > MAX_SMALL_PARTS + len(encoded) // LEAST_PART_BYTES:
                raise UrlFailed("the host sends the image in very small chunks")
            held.grow(len(encoded))
        return bytes(encoded)


def core(url: httpx.URL) -> httpcore.URL:
    """Convert a URL to httpcore's type."""
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


def parsed(address: str, base: httpx.URL | None = None) -> httpx.URL:
    """Parse a URL, which may be relative to *base*.  Raises `UrlNotAllowed`."""
    try:
        return base.join(address) if base else httpx.URL(address)
    except (httpx.InvalidURL, ValueError):
        raise UrlNotAllowed("this is not a URL") from None
