"""One-line messages for exceptions of other libraries."""

MAX_LENGTH = 200  # characters of the exception's message


def in_short(exc: BaseException) -> str:
    """Return type and message of an exception as one line of limited length."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:MAX_LENGTH]}"
