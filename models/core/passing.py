"""Temporary failures at the start: an unreachable hub, memory that another process still holds."""

import socket
from collections.abc import Iterator

from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from models.core.contract import Temporary

AWAY_ERRORS = (ConnectionError, TimeoutError, socket.gaierror)
# Base classes of such errors in HTTP clients and torch, which may not be installed.
AWAY_ERROR_NAMES = {"TransportError", "OutOfMemoryError"}
LASTING_ERROR_NAMES = {"UnsupportedProtocol", "LocalProtocolError"}  # a setting causes them
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500  # statuses


def passes(exc: BaseException) -> bool:
    """Return True if *exc*, or a cause of it, is temporary."""
    chain = list(causes(exc))
    if any(isinstance(each, OfflineModeIsEnabled) for each in chain):  # a setting
        return False
    return any(map(is_passing, chain))


def is_passing(exc: BaseException) -> bool:
    """Return True if *exc* itself is temporary, whatever its cause."""
    if isinstance(exc, HfHubHTTPError):
        return exc.response.status_code == TOO_MANY_REQUESTS or exc.response.status_code >= SERVER_ERROR
    names = {kind.__name__ for kind in type(exc).__mro__}
    away = isinstance(exc, (*AWAY_ERRORS, Temporary, MemoryError)) or bool(names & AWAY_ERROR_NAMES)
    return away and not names & LASTING_ERROR_NAMES


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield *exc*, its cause, the cause of that, and so on."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
