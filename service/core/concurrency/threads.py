"""Work of the event loop on other threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

T = TypeVar("T")


async def on_thread(work: Callable[..., T], *args: object, pool: Executor | None = None) -> T:
    """Run `finished` on a thread of *pool*, by default the loop's own pool."""
    return await asyncio.get_running_loop().run_in_executor(pool, finished, work, *args)


def finished(work: Callable[..., T], *args: object) -> T:
    """
    Return the result of *work*.

    Raises:
        RuntimeError: *work* raised an exception that a future cannot carry.  A future rejects
            `StopIteration` and would never be done; `SystemExit` would end the event loop, and
            `CancelledError` a task.
    """
    try:
        return work(*args)
    except BaseException as exc:
        if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
            raise
        raise RuntimeError(f"the work raised {type(exc).__name__}") from exc
