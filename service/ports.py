"""Ports that the service listens on: taken before its models are warmed, opened when they serve."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from service.settings import SettingsError

BACKLOG = 2048  # connections that may wait to be accepted
AT_ONCE = 128  # of them that are accepted in one turn of the event loop


class Listener(socket.socket):
    """
    A socket from which asyncio accepts several connections in a turn, but none after one that failed.

    asyncio would go on.  Where there is no file for a connection, each attempt is a line in the log and
    another attempt a second later, which would multiply.
    """

    _failed = False

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection.  Raises `OSError`; `BlockingIOError` is the end of the turn."""
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
        """The socket, which listens from now on.  Raises `SettingsError` where another one does."""
        try:
            self.held.listen(BACKLOG)
        except OSError as exc:
            raise taken(self.setting, self.address, exc) from exc
        return self.held


@contextmanager
def bound(setting: str, host: str, port: int) -> Iterator[Port]:
    """A port that is ours while the context is open.  Raises `SettingsError` where it is not free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Told that it is TCP, or asyncio leaves Nagle's algorithm on, and answers wait for 40 ms.
    with Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as held:
        # A restart finds connections of before still closing; two that are bound meet when they listen.
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            held.bind((host, port))
        except OSError as exc:
            raise taken(setting, (host, port), exc) from exc
        yield Port(setting, (host, port), held)


def taken(setting: str, address: tuple[str, int], exc: OSError) -> SettingsError:
    """One line about a port that we cannot listen on."""
    host, port = address
    return SettingsError(f"{setting}: cannot listen on {host}:{port}: {exc.strerror}")
