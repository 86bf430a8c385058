"""Ports of the service: bound before its models are loaded, opened when they serve; and their connections."""

import errno
import fcntl
import os
import resource
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from service.core.settings import NotYet, SettingsError
from service.core.settings.tree import Settings

BACKLOG = 2048  # connections that may wait to be accepted
ACCEPTS_PER_TURN = 128  # connections that are accepted in one turn of the event loop
MAX_OPEN_FILES = 65_536  # open files of the process
MAX_UNSENT_BYTES = 2**17  # bytes of one connection that wait in the kernel for the caller to read
# Errors that may pass: another process may end, and a network may come up.
TEMPORARY_ERRNOS = {errno.EADDRINUSE, errno.EADDRNOTAVAIL}
UNIX_MODE = 0o660  # who may write to a Unix socket may connect


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


class ListeningPlace(Protocol):
    """Where one server listens; *address* is for people."""

    @property
    def address(self) -> str: ...

    def open(self) -> socket.socket:
        """Listen, and return the socket.  Raises `NotYet` if another socket listens."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port of ours, named by its *setting*, and the socket that is bound to it."""

    setting: str
    address: str
    held: socket.socket

    def open(self) -> socket.socket:
        """Listen, and return the socket.  Raises `NotYet` if another socket listens."""
        try:
            self.held.listen(BACKLOG)
        except OSError as exc:
            raise taken(self.setting, self.address, exc) from exc
        return self.held


class UnixSocket:
    """
    A Unix socket, of which there is no file before it is opened: until then its models are loaded.

    Its owner and their group may connect.

    Args:
        setting: names the file.

    Raises:
        NotYet: another process listens.
        SettingsError: the file is no socket, or its folder is missing or not writable.
    """

    def __init__(self, setting: str, path: Path) -> None:
        self.address = f"unix:{path}"
        self._setting, self._path = setting, path
        self._made: tuple[int, int] | None = None
        self._check()
        self._held = Listener(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> "UnixSocket":
        return self

    def __exit__(self, *_: object) -> None:
        """Close, and remove the file if it is still the own one."""
        self._held.close()
        if self._made and self._path.exists() and self._made == identity(self._path):
            self._path.unlink()

    def open(self) -> socket.socket:
        """Replace a file that a killed process left, and listen.  Raises as the constructor."""
        try:
            with locked(self._path.parent):  # two processes may open at the same time
                self._check()
                self._path.unlink(missing_ok=True)
                self._held.bind(str(self._path))
                self._path.chmod(UNIX_MODE)  # no client can connect before `listen`
                self._held.listen(BACKLOG)
                self._made = identity(self._path)
        except OSError as exc:
            raise taken(self._setting, self.address, exc) from exc
        return self._held

    def _check(self) -> None:
        """Raise what the constructor raises."""
        try:
            if not os.access(self._path.parent, os.W_OK | os.X_OK):
                raise OSError(errno.EACCES, f"no folder {self._path.parent} that this user may write to")
            if self._path.exists() and not stat.S_ISSOCK(self._path.stat().st_mode):
                raise OSError(errno.EEXIST, "there is a file that is no socket")
            with socket.socket(socket.AF_UNIX) as other:
                other.setblocking(False)
                code = other.connect_ex(str(self._path))
            if code in (0, errno.EAGAIN):  # a full backlog is a listener too
                code = errno.EADDRINUSE
            if code not in (errno.ENOENT, errno.ECONNREFUSED):
                raise OSError(code, os.strerror(code))
        except OSError as exc:
            raise taken(self._setting, self.address, exc) from exc


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes that lock it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def identity(file: Path) -> tuple[int, int]:
    """Return the device and inode of *file*, which differ from those of a later file of its name."""
    found = file.lstat()
    return found.st_dev, found.st_ino


@contextmanager
def all_bound(settings: Settings) -> Iterator[dict[str, ListeningPlace]]:
    """
    Bind all ports that *settings* name, by setting, while the context is open.

    A Unix socket stands for `server.port`.

    Raises:
        NotYet: see `bound` and `UnixSocket`.
        SettingsError: likewise, or two settings name the same port.
    """
    server, dialects = settings.server, settings.dialects
    wanted = {
        "server.port": (server.host, None if server.uds else server.port),
        "server.metrics_port": (server.host, server.metrics_port),
        "dialects.port": (dialects.host, dialects.port),
        "dialects.pickle_port": (dialects.host, dialects.pickle_port),
    }
    ports: dict[str, ListeningPlace] = {}
    with ExitStack() as held:
        if server.uds:
            ports["server.port"] = held.enter_context(UnixSocket("server.uds", server.uds))
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
        held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES)
        try:
            held.bind((host, port))
        except OSError as exc:
            raise taken(setting, f"{host}:{port}", exc) from exc
        yield Port(setting, f"{host}:{port}", held)


def taken(setting: str, address: str, exc: OSError) -> SettingsError:
    """Build the error of an address that cannot be listened on."""
    kind = NotYet if exc.errno in TEMPORARY_ERRNOS else SettingsError
    return kind(f"{setting}: cannot listen on {address}: {exc.strerror}")


def most_connections() -> int:
    """
    Raise the limit of open files as far as the system allows, and return three quarters of it.

    The rest is for models, question sets and connections to other servers.  Without this limit the process
    would run out of files, and asyncio would retry to accept connections in a loop.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = MAX_OPEN_FILES if soft == resource.RLIM_INFINITY else min(soft, MAX_OPEN_FILES)
    return files * 3 // 4
