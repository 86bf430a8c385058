"""Pictures fetched from the hosts that the operator lists."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpcore
import httpx

from service import __version__
from service.concurrency.budget import Budget
from service.errors import ImageTooLarge, UrlFailed, UrlNotAllowed
from service.settings.sections import Images
from service.urls.hosts import allowed
from service.urls.network import PublicNetwork

MAX_CONNECTIONS = 64
MAX_REDIRECTS = 3
REDIRECTS = {301, 302, 303, 307, 308}
LARGEST_HELD = 8  # pictures of the largest size that are held at once

# No encoding: bytes are what they are, and nothing is unpacked.
HEADERS = [
    ("Accept", "image/*"),
    ("Accept-Encoding", "identity"),
    ("User-Agent", f"scoregate/{__version__}"),
]


class Fetcher:
    """
    Fetches pictures, without cookies, without a proxy, and with nothing of the caller's request.

    Args:
        network: connects; to public addresses only, by default.
    """

    def __init__(self, limits: Images, network: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._limits = limits
        self._budget = Budget(LARGEST_HELD * limits.max_bytes)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=MAX_CONNECTIONS,
            network_backend=network or PublicNetwork(),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    @asynccontextmanager
    async def open(self, url: str, urgent: bool) -> AsyncIterator[bytes]:
        """
        The bytes at *url*, accounted for while the context is open.

        Raises:
            UrlNotAllowed: the host, or one that it redirects to, is not listed or has no public address.
            UrlFailed: the host does not answer, or not with a picture.
            ImageTooLarge: there are more than `images.max_bytes`.
        """
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._limits.url_timeout_s):
                    encoded = await self._fetched(url, urgent, held)
            except TimeoutError:
                raise UrlFailed(f"it took more than {self._limits.url_timeout_s:g} seconds") from None
            except (httpcore.NetworkError, httpcore.ProtocolError):
                raise UrlFailed("the host cannot be reached, or broke off") from None
            yield encoded

    async def _fetched(self, address: str, urgent: bool, held: AsyncExitStack) -> bytes:
        url = parsed(address)
        for _ in range(1 + MAX_REDIRECTS):
            async with self._pool.stream("GET", self._checked(url), headers=HEADERS) as response:
                headers = httpx.Headers(response.headers)
                if response.status not in REDIRECTS:
                    return await self._body(response, headers, urgent, held)
                url = parsed(headers.get("location", ""), url)
        raise UrlFailed(f"the host redirects more than {MAX_REDIRECTS} times")

    def _checked(self, url: httpx.URL) -> httpcore.URL:
        """The address of a listed host.  Raises `UrlNotAllowed`."""
        host = url.raw_host.decode("ascii")
        listed = self._limits.allowed_url_hosts
        if url.userinfo or not allowed(listed, url.scheme, host, url.port):
            raise UrlNotAllowed("this server does not download images from that host")
        return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)

    async def _body(
        self, response: httpcore.Response, headers: httpx.Headers, urgent: bool, held: AsyncExitStack
    ) -> bytes:
        """What was sent, once there is room for it.  Raises `UrlFailed` or `ImageTooLarge`."""
        if response.status != 200:
            raise UrlFailed(f"the host returned status {response.status}")
        if headers.get("content-encoding", "identity") != "identity":
            raise UrlFailed("the host sent the image in a Content-Encoding, which it was asked not to")
        most, declared = self._limits.max_bytes, headers.get("content-length", "")
        expected = int(declared) if declared.isdecimal() else most
        if expected > most:
            raise ImageTooLarge(f"{expected} bytes; at most {most}")
        await held.enter_async_context(self._budget.hold(expected, urgent))
        encoded = bytearray()
        async for part in response.aiter_stream():
            encoded += part
            if len(encoded) > most:
                raise ImageTooLarge(f"more than {most} bytes")
        return bytes(encoded)


def parsed(address: str, base: httpx.URL | None = None) -> httpx.URL:
    """A URL, or one that is relative to *base*.  Raises `UrlNotAllowed`."""
    try:
        return base.join(address) if base else httpx.URL(address)
    except (httpx.InvalidURL, ValueError):
        raise UrlNotAllowed("this is not a URL") from None
