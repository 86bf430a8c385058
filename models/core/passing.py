"""Temporary failures at the start: an unreachable hub, memory that another process still holds."""

import socket
from collections.abc import Iterator

from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from models.core.contract import Temporary

AWAY = (ConnectionError, TimeoutError, socket.gaierror)
# Base classes of such errors in HTTP clients and torch, which may not be installed.
AWAY_BY_NAME = {"TransportError", "OutOfMemoryError"}
NEVER_BY_NAME = {"UnsupportedProtocol", "LocalProtocolError"}  # such errors that a setting causes
TOO_MANY, BROKEN = 429, 500  # statuses


def passes(exc: BaseException) -> bool:
    """Return True if *exc*, or a cause of it, is temporary."""
    chain = list(causes(exc))
    if any(isinstance(each, OfflineModeIsEnabled) for each in chain):  # a setting
        return False
    return any(map(is_passing, chain))


def is_passing(exc: BaseException) -> bool:
    """Return True if *exc* itself is temporary, whatever its cause."""
    if isinstance(exc, HfHubHTTPError):
        return exc.response.status_code == TOO_MANY or exc.response.status_code >= BROKEN
    names = {kind.__name__ for kind in type(exc).__mro__}
    away = isinstance(exc, (*AWAY, Temporary, MemoryError)) or bool(names & AWAY_BY_NAME)
    return away and not names & NEVER_BY_NAME


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield *exc*, its cause, the cause of that, and so on."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
