"""Work that the event loop has done on a thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def on_thread(work: Callable[..., T], *args: object, pool: Executor | None = None) -> T:
    """What `finished` returns or raises, on a thread of *pool*, or of the loop's own."""
    return await asyncio.get_running_loop().run_in_executor(pool, finished, work, *args)


def finished(work: Callable[..., T], *args: object) -> T:
    """
    The result of *work*.

    Raises:
        RuntimeError: *work* raised `StopIteration`.  A future refuses that one, so that whoever awaits it
            would wait for good.
    """
    try:
        return work(*args)
    except StopIteration as exc:
        raise RuntimeError("the work raised StopIteration") from exc
