"""A batch that is not full: whom it waits for, and for how long (ADR 0001)."""

import asyncio
from contextlib import ExitStack

import pytest

from tests.support.devices import Words, device, learns, outcomes_of, put, until_idle

pytestmark = pytest.mark.anyio


async def test_an_idle_device_lingers_only_where_it_was_told_to():
    """With `linger_ms` the first call waits for company until its batch is full."""
    model = Words()
    served, hosted = device(model, limits={"max_items": 3, "linger_s": 60.0})
    async with served:
        first = put(served, hosted, 1)
        await asyncio.sleep(0)
        rest = put(served, hosted, 2, 3)
        await outcomes_of(first + rest)

    assert [[1, 2, 3]] == model.batches[2:]


async def test_an_idle_device_waits_for_calls_that_are_being_prepared():
    """The images of one request are decoded in turn, and share a batch all the same."""
    model = Words()
    served, hosted = device(model)
    async with served:
        learns(hosted, fixed=60.0)
        with hosted.queue.pending.expecting("interactive", 2, served.clock):
            calls = put(served, hosted, 1, lane="interactive")
            await until_idle()
            assert [] == model.batches[2:]
        calls += put(served, hosted, 2, 3, lane="interactive")
        await outcomes_of(calls)

    assert [[1, 2, 3]] == model.batches[2:]


async def test_it_waits_no_longer_than_a_batch_saved_is_worth():
    """However long they take: twice the fixed part, and it goes without them."""
    model = Words()
    served, hosted = device(model)
    async with served:
        learns(hosted, fixed=0.01)
        with hosted.queue.pending.expecting("interactive", 1, served.clock):
            await outcomes_of(put(served, hosted, 1, lane="interactive"))

    assert [[1]] == model.batches[2:]


@pytest.mark.parametrize(("between_s", "batches"), [(1.0, [[1, 2]]), (5.0, [[1], [2]])])
async def test_it_waits_only_where_the_next_call_is_likely_to_be_ready_by_then(between_s, batches):
    """One more call is worth twice the two seconds of a batch."""
    now = 0.0
    model = Words()
    served, hosted = device(model, clock=lambda: now)
    async with served:
        learns(hosted, fixed=2.0)
        with hosted.queue.pending.expecting("interactive", 10, served.clock):
            now = 10 * between_s
        with hosted.queue.pending.expecting("interactive", 10, served.clock):
            calls = put(served, hosted, 1, lane="interactive")
            await until_idle()
            if len(batches) == 2:
                await outcomes_of(calls)
        calls += put(served, hosted, 2, lane="interactive")
        await outcomes_of(calls)

    assert batches == model.batches[2:]


async def test_it_waits_for_nobody_who_sets_out_later_and_for_nobody_less_urgent():
    """Or calls would wait for one another without end, and interactive ones for bulk."""
    model = Words()
    served, hosted = device(model)
    async with served:
        learns(hosted, fixed=60.0)
        with hosted.queue.pending.expecting("bulk", 1, served.clock), ExitStack() as late:
            await outcomes_of(put(served, hosted, "urgent", lane="interactive"))
            with hosted.queue.pending.expecting("interactive", 1, served.clock):
                calls = put(served, hosted, 1, lane="interactive")
                await until_idle()
                late.enter_context(hosted.queue.pending.expecting("interactive", 1, served.clock))
            await outcomes_of(calls)

    assert [["urgent"], [1]] == model.batches[2:]


async def test_it_waits_for_no_one_while_another_model_has_work():
    """The device is there for all."""
    model, other = Words(), Words()
    served, hosted, second = device(model, other)
    async with served:
        learns(hosted, fixed=60.0)
        with hosted.queue.pending.expecting("interactive", 1, served.clock):
            calls = put(served, hosted, 1, lane="interactive")
            await until_idle()
            calls += put(served, second, 2, lane="interactive")
            await outcomes_of(calls)

    assert ([[1]], [[2]]) == (model.batches[2:], other.batches[2:])
