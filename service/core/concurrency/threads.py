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
        RuntimeError: *work* raised what is no error to whoever awaits it.  A future refuses `StopIteration`,
            and would be awaited for ever; `SystemExit` would end the event loop, `CancelledError` a task.
    """
    try:
        return work(*args)
    except BaseException as exc:
        if isinstance(exc, Exception) and not isinstance(exc, StopIteration):
            raise
        raise RuntimeError(f"the work raised {type(exc).__name__}") from exc
