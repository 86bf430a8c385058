"""Several pieces of work at once."""

import asyncio
import gc
import weakref

import pytest

from service.core.concurrency.tasks import Tasks, side_by_side

pytestmark = pytest.mark.anyio


class Works:
    """Pieces of work that end when they are told to, and who has begun and been made."""

    def __init__(self, count):
        self.made, self.begun, self.doors = [], [], [asyncio.Event() for _ in range(count)]

    def __iter__(self):
        for number in range(len(self.doors)):
            self.made.append(number)
            yield self.work(number)

    async def work(self, number):
        self.begun.append(number)
        await self.doors[number].wait()
        return number


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_results_have_the_order_of_the_works():
    """Whoever ends first."""
    works = Works(3)
    task = asyncio.create_task(side_by_side(works))
    for door in reversed(works.doors):
        await settled()
        door.set()

    assert [0, 1, 2] == await task


@pytest.mark.parametrize("count", [0, 1])
async def test_one_piece_of_work_needs_no_task(count):
    """Nor does none."""
    before = asyncio.all_tasks()

    async def work():
        assert before == asyncio.all_tasks()
        return "done"

    assert ["done"] * count == await side_by_side(work() for _ in range(count))


async def test_no_more_are_under_way_than_there_is_room_for_and_the_others_are_not_made():
    """The room is asked for anew each time; when it shrinks, nothing begins until there is some again."""
    room = 2
    works = Works(5)
    task = asyncio.create_task(side_by_side(works, lambda: room))
    await settled()
    assert [0, 1] == works.begun == works.made

    works.doors[1].set()
    await settled()
    assert [0, 1, 2] == works.begun == works.made
    room = 1
    works.doors[0].set()
    await settled()
    assert [0, 1, 2] == works.begun
    room = 3
    works.doors[2].set()
    await settled()
    assert [0, 1, 2, 3, 4] == works.begun
    for door in works.doors:
        door.set()

    assert [0, 1, 2, 3, 4] == await task


async def test_who_leaves_takes_all_of_it_along():
    """Those that wait for room never begin."""
    works, before = Works(5), asyncio.all_tasks()
    task = asyncio.create_task(side_by_side(works, lambda: 2))
    await settled()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert task.cancelled()
    assert [0, 1] == works.made
    assert before == asyncio.all_tasks()


@pytest.mark.parametrize("count", [1, 3])
async def test_what_one_work_raises_is_raised_as_it_is_and_ends_the_others(count):
    """Whether it runs alone or beside others: who handles the error sees no group."""
    works, door, before = Works(count - 1), asyncio.Event(), asyncio.all_tasks()
    door.set()

    with pytest.raises(ValueError, match="failed"):
        await side_by_side([*works, fails(door)])
    assert before == asyncio.all_tasks()


async def test_work_that_ends_cancelled_keeps_no_room_from_the_others():
    """What it awaited was cancelled by somebody else; whoever waits for all of it is told so."""
    door = asyncio.get_running_loop().create_future()
    done = []

    async def work(number):
        done.append(number)
        await (door if not number else asyncio.sleep(0))

    task = asyncio.create_task(side_by_side((work(number) for number in range(4)), lambda: 1))
    await settled()
    door.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await task

    assert [0, 1, 2, 3] == done


async def fails(door):
    await door.wait()
    raise ValueError("failed")


async def test_a_task_is_referenced_until_it_ends():
    """The event loop would let it be collected; afterwards nothing holds it."""
    tasks, (work,) = Tasks(), (works := Works(1))
    started = weakref.ref(tasks.start(work))
    await settled()
    gc.collect()
    assert started() is not None

    works.doors[0].set()
    assert 0 == await started()
    await settled()
    assert started() is None


async def test_waiting_ends_with_the_last_task_whatever_the_others_raise():
    """It waits for all of them, and raises none of their errors."""
    tasks, works, door = Tasks(), Works(1), asyncio.Event()
    failing = tasks.start(fails(door))
    tasks.start(works.work(0))
    waiting = asyncio.create_task(tasks.wait())
    door.set()
    await settled()
    assert failing.done()
    assert not waiting.done()

    works.doors[0].set()
    assert await waiting is None
    assert isinstance(failing.exception(), ValueError)


async def test_cancelling_ends_all_tasks():
    """It returns when they have ended."""
    tasks, works = Tasks(), Works(2)
    started = [tasks.start(work) for work in works]
    await settled()
    await tasks.cancel()

    assert all(task.cancelled() for task in started)
