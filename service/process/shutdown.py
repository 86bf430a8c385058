"""A time limit for the end of the process: threads that compute cannot be interrupted."""

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

log = logging.getLogger("scoregate.end")


@contextmanager
def ending_within(seconds: float, status: Callable[[], int]) -> Iterator[Callable[[], None]]:
    """
    Yield a function that starts the time limit: *seconds* later the process exits, in or after the context.

    Works in the main thread only, and once at a time: it uses the process' alarm signal.

    Args:
        status: returns the exit status.
    """

    def begin() -> None:
        if not signal.getitimer(signal.ITIMER_REAL)[0]:  # a second signal gives no more time
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def exit_now(*_: Any) -> None:
        try:
            log.warning("the time to finish is over: running work is dropped")
        finally:
            os._exit(status())

    before = signal.signal(signal.SIGALRM, exit_now)
    try:
        yield begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
