"""Requests that wait for room in a lane: in line, so that many cost no more than one."""

import asyncio
import math
from types import SimpleNamespace

import pytest

from service.core.errors import DeadlineExceeded, Overloaded, TooLarge
from service.core.lanes import BULK, INTERACTIVE
from service.serving.admission import (
    MAX_REQUESTS,
    MAX_WAITING_ITEMS,
    RETRIED_ITEMS_PER_S,
    Demand,
    WaitingRoom,
)
from service.serving.context import Context
from service.serving.handle import Handle
from tests.support.handles import asking, call, context, held, serving, until

pytestmark = pytest.mark.anyio


class Model(Handle):
    """A model whose lane has room for so many requests."""

    def __init__(self, room=0):
        super().__init__(SimpleNamespace(name="vqa"), None, recheck_s=0.002)
        self.room = room
        self.checked, self.admitted = [], []

    def admit(self, context, demand):
        self.checked.append(context.request_id)
        if demand.calls > 1:
            raise TooLarge
        if not self.room:
            raise Overloaded("full")


def waits(model, room, name, *, timeout_s=60, items=1, lane=BULK, calls=1):
    """A request that waits until it is admitted, and then takes the room of one."""

    async def admitted():
        deadline = asyncio.get_running_loop().time() + timeout_s
        with room.place(0, items) as place:
            await model.wait_for_room(Context(name, deadline, lane, None), Demand(calls), place)
            model.room -= 1
            model.admitted.append(name)

    return asyncio.create_task(admitted())


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("count", [10, 300])
async def test_only_the_first_in_line_looks_for_room(count):
    """1,500 requests that each looked by themselves took a whole core."""
    model, room = Model(), WaitingRoom(0)
    tasks = [waits(model, room, number) for number in range(count)]
    await until(lambda: len(model.checked) >= 10)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert {0} == {*model.checked}


async def test_who_came_first_is_admitted_first_and_one_by_one():
    """Also before one who comes when there is room again."""
    model, room = Model(), WaitingRoom(0)
    tasks = [waits(model, room, number) for number in range(20)]
    await turns()
    model.room = 5
    tasks.append(waits(model, room, "late"))
    await until(lambda: len(model.admitted) == 5)
    await turns()
    assert [0, 1, 2, 3, 4] == model.admitted
    model.room = 100
    await asyncio.gather(*tasks)

    assert [*range(20), "late"] == model.admitted


async def test_who_waits_for_one_lane_or_model_keeps_nobody_from_another():
    """Each lane of each model has a line of its own."""
    model, other, room = Model(), Model(room=1), WaitingRoom(0)
    first = waits(model, room, "vqa")
    await turns()
    await waits(other, room, "clip")
    model.room = 1
    await waits(model, room, "urgent", lane=INTERACTIVE)

    assert ["clip"] == other.admitted
    assert ["urgent"] == model.admitted
    first.cancel()


async def test_who_leaves_the_line_keeps_nobody_from_it():
    model, room = Model(), WaitingRoom(0)
    first, second = waits(model, room, 1), waits(model, room, 2)
    await turns()
    first.cancel()
    model.room = 1
    await second

    assert [2] == model.admitted


async def test_who_is_not_admitted_before_the_deadline_has_the_refusal():
    """And one whose turn never came is late, without a look."""
    model, room = Model(), WaitingRoom(0)
    first = waits(model, room, 1, timeout_s=0.05)
    await turns()
    with pytest.raises(DeadlineExceeded):
        await waits(model, room, 2, timeout_s=0.02)
    with pytest.raises(Overloaded, match="full"):
        await first

    assert {1} == {*model.checked}


async def test_what_no_lane_will_ever_take_does_not_wait():
    model, room = Model(), WaitingRoom(0)
    with pytest.raises(TooLarge):
        await waits(model, room, 1, calls=2)


async def test_room_is_seen_when_a_call_has_ended():
    """Not when the time for another look has come."""
    async with serving(recheck_s=math.inf, max_waiting=20, max_items=1) as (model, fake, _, hosted):
        busy = await held(model, fake)
        asked = [asking(model, call(name), lane=BULK)[0] for name in ("a", "b")]
        await until(lambda: 2 == hosted.queue.depth[BULK])
        with WaitingRoom(0).place(0, 1) as place:
            task = asyncio.create_task(model.wait_for_room(context(BULK), Demand(), place))
            await turns()
            waited = place.taken and not task.done()
            fake.hold.set()
            await task
        await asyncio.gather(busy, *asked)

    assert waited


async def test_so_many_bytes_and_items_may_wait_and_no_more():
    """What was taken is given back, and what does not wait takes nothing."""
    room = WaitingRoom(9)
    for size, items in ((0, MAX_WAITING_ITEMS), (9, 1)):
        with room.place(size, items) as first, room.place(1, 1) as second:
            first.take()
            first.take()  # once for all
            with pytest.raises(Overloaded):
                second.take()
        with room.place(size, items) as again:
            again.take()


async def test_as_many_requests_as_trainers_send_may_wait():
    """Who is beyond is told to come again."""
    model, room = Model(), WaitingRoom(0)
    for _ in range(MAX_REQUESTS - 3):
        room.take(0, 0)
    tasks = [waits(model, room, number) for number in range(3)]
    await turns()
    with pytest.raises(Overloaded, match="too many requests wait"):
        await waits(model, room, 3)
    for task in tasks:
        task.cancel()

    assert MAX_REQUESTS >= 800  # of verl-omni at once


def test_what_is_refused_after_it_was_admitted_is_asked_again_at_a_bounded_rate():
    """By the question LLM, say: the more wait, the later each is asked again."""
    room = WaitingRoom(0)
    with room.place(0, 2 * RETRIED_ITEMS_PER_S) as place:
        place.take()
        assert place.pause_s == 2
    assert place.pause_s == 0
