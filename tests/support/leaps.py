"""Deadlines that pass at once: the clock of the event loop is set forward."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

LEAP_S = 1000.0  # longer than any request may take

T = TypeVar("T")


async def out_of_time(request: Coroutine[object, object, T], begun: Callable[[], object]) -> T:
    """Return the answer to a *request* whose time is over as soon as *begun* is true."""
    loop = asyncio.get_running_loop()
    answer = loop.create_task(request)
    while not (begun() or answer.done()):
        await asyncio.sleep(0.001)
    now = loop.time
    loop.time = lambda: now() + LEAP_S  # type: ignore[method-assign]
    return await answer
