"""Ports of the service: bound before its models are loaded, opened when they serve; and their connections."""

import errno
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from service.core.settings import NotYet, SettingsError
from service.core.settings.tree import Settings

BACKLOG = 2048  # connections that may wait to be accepted
AT_ONCE = 128  # of them that are accepted in one turn of the event loop
MOST_FILES = 65_536  # open files of the process
UNSENT = 2**17  # bytes of one connection that wait in the kernel for the caller to read
# Errors that may pass: another process may end, and a network may come up.
PASSING = {errno.EADDRINUSE, errno.EADDRNOTAVAIL}


class Listener(socket.socket):
    """
    A socket from which asyncio accepts several connections in a turn, but none after a failure.

    asyncio would go on.  If no file is free for a connection, each attempt logs a line and schedules another
    attempt a second later, so attempts would multiply.
    """

    _failed = False

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection.  Raises `OSError`; `BlockingIOError` is the end of the turn."""
        if self._failed:
            self._failed = False
            raise BlockingIOError
        try:
            return super().accept()
        except BlockingIOError:
            raise
        except OSError:
            self._failed = True
            raise


@dataclass(frozen=True, slots=True)
class Port:
    """A port of ours, named by its *setting*, and the socket that is bound to it."""

    setting: str
    address: tuple[str, int]
    held: socket.socket

    def open(self) -> socket.socket:
        """Listen, and return the socket.  Raises `NotYet` if another socket listens."""
        try:
            self.held.listen(BACKLOG)
        except OSError as exc:
            raise taken(self.setting, self.address, exc) from exc
        return self.held


@contextmanager
def all_bound(settings: Settings) -> Iterator[dict[str, Port]]:
    """
    Bind all ports that *settings* name, by setting, while the context is open.

    Raises:
        NotYet: see `bound`.
        SettingsError: likewise, or two settings name the same port.
    """
    server, dialects = settings.server, settings.dialects
    wanted = {
        "server.port": (server.host, server.port),
        "server.metrics_port": (server.host, server.metrics_port),
        "dialects.port": (dialects.host, dialects.port),
        "dialects.pickle_port": (dialects.host, dialects.pickle_port),
    }
    ports: dict[str, Port] = {}
    with ExitStack() as held:
        for setting, (host, port) in wanted.items():
            if twin := next((each for each in ports if port and wanted[each] == (host, port)), None):
                raise SettingsError(f"{setting}: cannot listen on {host}:{port}: {twin} is the same port")
            if port is not None:
                ports[setting] = held.enter_context(bound(setting, host, port))
        yield ports


@contextmanager
def bound(setting: str, host: str, port: int) -> Iterator[Port]:
    """
    Bind a port while the context is open.

    Raises:
        NotYet: another process uses it, or no network of this machine has the address.
        SettingsError: it cannot be bound for another reason.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without IPPROTO_TCP asyncio keeps Nagle's algorithm on, which delays responses by 40 ms.
    with Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as held:
        # Connections of a previous process may still be closing.  A second listener fails in listen().
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Inherited by connections: otherwise the kernel takes megabytes of responses before the caller reads.
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
        try:
            held.bind((host, port))
        except OSError as exc:
            raise taken(setting, (host, port), exc) from exc
        yield Port(setting, (host, port), held)


def taken(setting: str, address: tuple[str, int], exc: OSError) -> SettingsError:
    """Build the error of a port that cannot be listened on."""
    host, port = address
    kind = NotYet if exc.errno in PASSING else SettingsError
    return kind(f"{setting}: cannot listen on {host}:{port}: {exc.strerror}")


def most_connections() -> int:
    """
    Raise the limit of open files as far as the system allows, and return three quarters of it.

    The rest is for models, question sets and connections to other servers.  Without this limit the process
    would run out of files, and asyncio would retry to accept connections in a loop.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = MOST_FILES if soft == resource.RLIM_INFINITY else min(soft, MOST_FILES)
    return files * 3 // 4
