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
    results: dict[int, T] = {}
    begun, room = 0, asyncio.Event()

    async def run(number: int, work: Coroutine[Any, Any, T]) -> None:
        results[number] = await work
        room.set()

    async with asyncio.TaskGroup() as group:
        for work in chain((first, second), coming):
            group.create_task(run(begun, work))
            begun += 1
            while at_once and begun - len(results) >= at_once():
                room.clear()
                await room.wait()
    return [results[number] for number in range(begun)]
