"""Short messages: exceptions of other libraries and lists of names, and the log without warnings."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

MAX_CHARACTERS = 200  # characters of the exception's message
MAX_NAMES = 4  # names of each kind in a message


def in_short(exc: BaseException) -> str:
    """Return type and message of an exception as one line of limited length."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:MAX_CHARACTERS]}"


def reason_of(exc: Exception) -> str:
    """Return the text of an exception; of one about a file the name and the reason, without a number."""
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.filename}: {exc.strerror}" if exc.filename else exc.strerror
    return str(exc)


def listed(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Join the first few of *names*, *most* of them."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings in the log."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
