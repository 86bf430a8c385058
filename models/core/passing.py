"""Failures of a start that pass by themselves: a hub that is away, memory that somebody else still holds."""

import socket
from collections.abc import Iterator

from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from models.core.contract import Temporary

AWAY = (ConnectionError, TimeoutError, socket.gaierror)
# Bases that HTTP clients and torch give to such errors of theirs.  None of them need be installed here.
AWAY_BY_NAME = {"TransportError", "OutOfMemoryError"}
TOO_MANY, BROKEN = 429, 500  # statuses


def passes(exc: BaseException) -> bool:
    """Whether *exc*, or what it was raised for, may be gone when the same is tried again."""
    chain = list(causes(exc))
    if any(isinstance(each, OfflineModeIsEnabled) for each in chain):  # which is a setting
        return False
    return any(map(is_passing, chain))


def is_passing(exc: BaseException) -> bool:
    """Whether *exc* itself is such a failure."""
    if isinstance(exc, HfHubHTTPError):
        return exc.response.status_code == TOO_MANY or exc.response.status_code >= BROKEN
    names = {kind.__name__ for kind in type(exc).__mro__}
    return isinstance(exc, (*AWAY, Temporary, MemoryError)) or bool(names & AWAY_BY_NAME)


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """*exc*, what it was raised for, and so on."""
    while exc is not None:
        yield exc
        exc = exc.__cause__ or (None if exc.__suppress_context__ else exc.__context__)
