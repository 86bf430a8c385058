"""Deadlines that pass at once: the clock of the event loop is set forward."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

LEAP_S = 1000.0  # longer than any request may take

T = TypeVar("T")


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test sets forward."""

    _leaped_s = 0.0

    def time(self) -> float:
        return super().time() + self._leaped_s

    def leap(self, seconds: float) -> None:
        """Set the clock forward."""
        self._leaped_s += seconds


def leap(seconds: float = LEAP_S) -> None:
    """Set the clock of the running loop forward."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, LeapingLoop)
    loop.leap(seconds)


async def out_of_time(request: Coroutine[object, object, T], begun: Callable[[], object]) -> T:
    """Return the answer to a *request* whose time is over as soon as *begun* is true."""
    answer = asyncio.get_running_loop().create_task(request)
    while not (begun() or answer.done()):
        await asyncio.sleep(0.001)
    leap()
    return await answer


async def without_pauses(work: Coroutine[object, object, T]) -> T:
    """Return the result of *work* that has no deadline; each of its sleeps ends at once."""
    result = asyncio.get_running_loop().create_task(work)
    while not result.done():
        await asyncio.sleep(0)
        leap()
    return await result


async def leap_on() -> None:
    """Set the clock forward again and again, a tenth of a second each time, until this is cancelled."""
    while True:
        leap(0.1)
        await asyncio.sleep(0.001)
