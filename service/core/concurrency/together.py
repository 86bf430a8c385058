"""Several pieces of work at the same time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, TypeVar

T = TypeVar("T")


async def side_by_side(
    works: Iterable[Coroutine[Any, Any, T]], at_once: Callable[[], int] | None = None
) -> list[T]:
    """
    The results of *works*, in order; a single one needs no task.

    Args:
        at_once: how many may be under way, asked again before each one begins; without it all are.  Those
            to come are not even made before there is room for them.
    """
    coming = iter(works)
    first, second = next(coming, None), next(coming, None)
    if first is None:
        return []
    if second is None:
        return [await first]
    begun: list[asyncio.Task[T]] = []
    ended, room = 0, asyncio.Event()

    async def run(work: Coroutine[Any, Any, T]) -> T:
        nonlocal ended
        try:
            return await work
        finally:  # cancelled, too, which a group takes for an end as any other
            ended += 1
            room.set()

    async with asyncio.TaskGroup() as group:
        for work in chain((first, second), coming):
            begun.append(group.create_task(run(work)))
            while at_once and len(begun) - ended >= at_once():
                room.clear()
                await room.wait()
    return [task.result() for task in begun]
