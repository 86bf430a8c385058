"""What is refused before any work, and work that is not begun since nobody waits for it."""

import asyncio
import threading

import pytest

from service.errors import LaneFull, Overloaded
from tests.serving.handles import asking, call, context, held, serving, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("lane", "kind"), [("interactive", LaneFull), ("bulk", Overloaded)])
async def test_a_full_lane_is_refused_with_the_time_in_which_it_drains(lane, kind):
    """Before any work is done, and after it where others came first meanwhile."""
    async with serving(max_waiting=20, max_items=1) as (handle, model, _, resident):
        for _ in range(50):
            resident.queue.finished(cost=10, seconds=2.0)
        busy = await held(handle, model)
        asked = [asking(handle, call(name), lane=lane)[0] for name in ("a", "b", "one too many")]
        [outcome] = await asked.pop()
        with pytest.raises(kind) as refused:
            handle.admit(context(lane))
        model.hold.set()
        await asyncio.gather(busy, *asked)

    assert kind is type(outcome)
    assert 4.0 < refused.value.retry_after_s < 6.5


async def test_what_nobody_waits_for_any_more_is_not_prepared():
    """Decoding for callers who have left would keep the others waiting."""
    async with serving() as (handle, model, _, resident):
        prepared, door = [], threading.Event()
        prepare = model.prepare

        def slow(one):
            prepared.append(one.question)
            door.wait(10)
            return prepare(one)

        model.prepare = slow
        first, _ = asking(handle, call("first"))
        gone, _ = asking(handle, call("gone"), call("gone too"))
        await until(lambda: prepared and 2 == len(resident.queue.pending.groups))
        gone.cancel()
        await until(lambda: 1 == len(resident.queue.pending.groups))
        door.set()
        await first

    assert ["first"] == prepared


async def test_interactive_work_that_would_come_too_late_is_refused_with_the_time_to_wait():
    """Bulk work waits instead: trainers crash on refusals."""
    async with serving() as (handle, model, _, resident):
        for _ in range(50):
            resident.queue.finished(cost=10, seconds=2.0)
        busy = await held(handle, model)
        behind, _ = asking(handle, call(), lane="interactive")
        await until(lambda: resident.queue.depth("interactive"))

        with pytest.raises(LaneFull) as refused:
            handle.admit(context(seconds=3.0))
        handle.admit(context(seconds=10.0))
        handle.admit(context("bulk", seconds=3.0))
        model.hold.set()
        await asyncio.gather(busy, behind)

    assert 3.0 < refused.value.retry_after_s < 4.5
