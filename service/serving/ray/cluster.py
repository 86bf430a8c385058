"""The connection to a Ray cluster, which this process starts or joins."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from service.core.settings import NotYet, SettingsError
from service.serving.ray import keep_to_this_machine

CONNECT_S = 5.0
CLIENT = "ray://"


@contextmanager
def connected(address: str) -> Iterator[None]:
    """
    Make this process a driver of the cluster at *address* while the context is open.

    `local` starts a cluster and ends it; `auto` finds the one of which this machine is a node.  A process
    joins a cluster through a node on its own machine, which is required for `HOST:PORT` (or
    `ray://HOST:PORT`, its client's address).

    Raises:
        NotYet: there is no cluster.
        SettingsError: Ray is not installed, or the cluster cannot be joined; in one line.
    """
    if find_spec("ray") is None:
        raise SettingsError('runtime.kind: "ray" needs Ray: pip install ".[ray]"')
    if address == "local":
        keep_to_this_machine()
    elif address != "auto":
        reach(address)
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address == "local":
            ray.init(address="local", include_dashboard=False, **quiet)
        else:
            ray.init(address=joined(address), **quiet)
    except Exception as exc:  # Ray raises the errors of its libraries
        reason = str(exc).strip().partition("\n")[0] or type(exc).__name__
        kind = NotYet if isinstance(exc, ConnectionError) else SettingsError
        raise kind(f"runtime.address: {address}: {reason}") from exc
    try:
        yield
    finally:
        ray.shutdown()


def reach(address: str) -> None:
    """Raise `NotYet` if nothing listens at *address*: Ray would retry for a minute."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_S).close()
    except OverflowError as exc:
        raise SettingsError(f"runtime.address: {address}: {exc}") from exc
    except OSError as exc:
        raise NotYet(f"runtime.address: {address}: nothing answers there: {exc}") from exc


def joined(address: str) -> str:
    """Return the address at which a node joins; for a client's address, the one that its server gives."""
    if not address.startswith(CLIENT):
        return address
    import ray

    with ray.init(address=address, logging_level=logging.ERROR):
        return str(ray.get_runtime_context().gcs_address)
