"""Messages of other libraries: exceptions in one line, and the log without warnings."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

MAX_LENGTH = 200  # characters of the exception's message


def in_short(exc: BaseException) -> str:
    """Return type and message of an exception as one line of limited length."""
    return f"{type(exc).__name__}: {' '.join(str(exc).split())[:MAX_LENGTH]}"


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings in the log."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
