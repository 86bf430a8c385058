"""Connections to public addresses only."""

import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import httpcore

from service.core.concurrency.cpu_threads import FairThreads
from service.core.concurrency.single_flight import SingleFlight
from service.core.errors import UrlNotAllowed
from service.images.urls.addresses import is_public

Resolve = Callable[[str, int], Awaitable[list[str]]]

# A name server that does not answer blocks a thread for many seconds.  The event loop's default threads parse
# requests, so names have threads of their own.  Concurrent look-ups of one name are shared.
LOOKUPS = FairThreads(64, "names")


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
