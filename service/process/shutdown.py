"""The end of the process, in time: threads that compute cannot be told to stop."""

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
    What begins the end.  The context must be left within *seconds* from then on, or the process exits.

    Only the main thread can have one, and one at a time: it is the process' alarm.

    Args:
        status: gives the exit status.
    """

    def begin() -> None:
        if not signal.getitimer(signal.ITIMER_REAL)[0]:  # a second signal gives no more time
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def exit_now(*_: Any) -> None:
        try:
            log.warning("the time to finish is over: what still runs is dropped")
        finally:
            os._exit(status())

    before = signal.signal(signal.SIGALRM, exit_now)
    try:
        yield begin
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
