"""Reasons of Redis errors in a few words, without addresses or passwords."""

import ssl
from collections.abc import Iterator

TOO_OLD = "it lacks a command; Redis 6.0 or later is needed"


def reason(exc: BaseException) -> str:
    """Return the error's name, and the remedy if one is known."""
    for error in chain(exc):
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {error.verify_message}"
        if isinstance(error, ssl.SSLError):
            return f"TLS failed ({error.reason}): is this a port for TLS?"
    name = type(exc).__name__
    if name.startswith("Authentication"):
        return f"{name}: it refuses the user or the password, or requires one"
    if "unknown command" in str(exc).lower():
        return TOO_OLD
    # Only the name: messages of libraries may quote addresses, which may hold passwords.
    return name


def chain(exc: BaseException) -> Iterator[BaseException]:
    """Iterate over *exc* and its causes."""
    error: BaseException | None = exc
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
