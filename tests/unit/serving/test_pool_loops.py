"""The loops of a pool: when batches begin, what their time counts for, and how the loops end."""

import asyncio
import threading
from dataclasses import replace
from functools import partial

import pytest

from service.core.errors import Draining
from service.observability.instruments import Instruments
from service.serving.batcher.batching import Queue
from service.serving.batcher.device import Device
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from tests.support.clocks import Clock
from tests.support.devices import (
    FaultyQueue,
    NotedQueue,
    Words,
    device,
    holding,
    outcomes_of,
    pool,
    put,
    until_idle,
    value_of,
)
from tests.support.fakes import HELD_S

pytestmark = pytest.mark.anyio


async def test_a_batch_waits_for_more_calls_until_it_is_full():
    """For as long as its model's `linger_s`; here the clock stands still."""
    served, hosted, copies = pool("cpu:0", clock=lambda: 0.0, queue=partial(Queue, linger_s=0.9))
    async with served:
        calls = put(served, hosted, "a")
        await until_idle()
        assert not calls[0].running
        calls += put(served, hosted, "b", "c", "d")
        await outcomes_of(calls)

    assert ["a", "b", "c", "d"] == copies["cpu:0"].batches[-1]


async def test_a_batch_that_waits_for_more_calls_does_not_begin_when_its_model_is_paused():
    """It begins when the model resumes."""
    time = [0.0]
    served, hosted, _ = pool("cpu:0", clock=lambda: time[0], queue=partial(Queue, linger_s=60.0))
    async with served:
        calls = put(served, hosted, "first")
        await until_idle()
        await served.pause(hosted)
        calls += put(served, hosted, "second")
        await until_idle()
        time[0] = 60.0
        calls += put(served, hosted, "third")
        await until_idle()
        assert [False] * 3 == [call.running for call in calls]

        served.resume(hosted)
        assert ["first", "second", "third"] == await outcomes_of(calls)


async def test_a_batch_that_waits_for_more_calls_does_not_begin_on_a_device_that_lost_its_copy():
    """The other device takes them."""
    time, linger = [0.0], partial(Queue, linger_s=60.0)
    served, hosted, copies = pool("cpu:0", "cpu:1", clock=lambda: time[0], queue=linger)
    async with served:
        calls = put(served, hosted, "first")
        await until_idle()
        del hosted.copies["cpu:0"]
        calls += put(served, hosted, "second")
        await until_idle()
        time[0] = 60.0
        calls += put(served, hosted, "third")
        assert ["first", "second", "third"] == await outcomes_of(calls)

    assert [] == copies["cpu:0"].calls


async def test_a_device_that_lost_its_copy_while_a_batch_waits_for_calls_serves_its_other_models():
    """At once, and not when the wait would have ended."""
    time, limits = [0.0], {"max_items": 8, "max_cost": 1000, "max_waiting": 10_000}
    first = HostedModel("m0", Words(), Queue(linger_s=60.0, **limits))
    second = HostedModel("m1", Words(), Queue(**limits))
    async with Pool([first, second], Instruments(["m0", "m1"]), clock=lambda: time[0]) as served:
        calls = put(served, first, "first")
        await until_idle()
        copies, first.copies = first.copies, {}
        assert ["second"] == await outcomes_of(put(served, second, "second"))

        time[0], first.copies = 60.0, copies
        calls += put(served, first, "third")
        assert ["first", "third"] == await outcomes_of(calls)


async def test_interactive_calls_run_next_to_a_bulk_batch_of_a_cpu_without_bulk_calls():
    """Those wait for the cores."""
    model = Words()
    model.info = replace(model.info, reentrant=True)
    hosted = HostedModel("m0", model, Queue(max_items=4, max_cost=1000, max_waiting=10_000))
    async with Pool([hosted], Instruments(["m0"]), devices=[Device("", 3)]) as served:
        busy = await holding(model, served, hosted)
        bulk, urgent = put(served, hosted, "bulk"), put(served, hosted, "a", "b", lane="interactive")
        await until_idle()
        assert [True, True, True, False] == [call.running for call in (busy, *urgent, *bulk)]
        model.hold.set()
        assert ["busy", "a", "b", "bulk"] == await outcomes_of([busy, *urgent, *bulk])


async def test_a_small_model_begins_on_the_core_that_a_large_one_leaves():
    """However the slots' last batches ended: the second slot waited longer for work than the first."""
    large, small = Words(), Words()
    for model in (large, small):
        model.info = replace(model.info, reentrant=True)
    served, first, second = device(large, small, large=(True, False), cores=2, clock=lambda: 0.0)
    gates = {word: threading.Event() for word in "ab"}
    small.answer = lambda call: gates[call].wait(HELD_S) and call if call in gates else call
    async with served:
        calls = put(served, second, *gates, lane="interactive")
        for word, call in zip(gates, calls, strict=True):
            gates[word].set()
            await outcomes_of([call])
            await until_idle()
        first.charged = second.charged = 0.0
        large.hold.clear()
        [bulk] = put(served, first, "bulk")
        [urgent] = put(served, second, "urgent", lane="interactive")
        await until_idle()
        assert urgent.running
        bulk.promote()
        large.hold.set()
        await outcomes_of([bulk, urgent])


@pytest.mark.parametrize("fault", ["the loop", "its batch"])
async def test_a_loop_that_ends_by_an_error_leaves_no_caller_without_an_answer(fault):
    """Neither those that wait nor those of the running batch."""
    served, hosted, copies = pool("cpu:0", queue=FaultyQueue)
    await served.__aenter__()
    if fault == "the loop":
        hosted.queue.broken = True
        calls = put(served, hosted, *range(6))
    else:
        copies["cpu:0"].hold.clear()
        calls = put(served, hosted, *range(6))
        await until_idle()
        served._tasks[0].cancel()
    outcomes = await outcomes_of(calls)
    copies["cpu:0"].hold.set()
    with pytest.raises(ZeroDivisionError if fault == "the loop" else asyncio.CancelledError):
        await served.__aexit__()

    assert [Draining] * 6 == [type(outcome) for outcome in outcomes]


async def test_a_batch_ends_before_the_pool_of_a_loop_that_has_ended_by_an_error():
    """Its caller has the score."""
    served, hosted, copies = pool("cpu:0", "cpu:1", queue=FaultyQueue)
    await served.__aenter__()
    for copy in copies.values():
        copy.hold.clear()
    [running] = put(served, hosted, "running")
    await until_idle()
    hosted.queue.broken = True
    await outcomes_of(put(served, hosted, "waiting"))
    leaving = asyncio.create_task(served.__aexit__())
    await until_idle()
    assert not leaving.done()
    for copy in copies.values():
        copy.hold.set()
    with pytest.raises(ZeroDivisionError):
        await leaving

    assert ["running"] == await outcomes_of([running])


async def test_a_pool_that_has_shut_down_is_not_stalled():
    """One whose loop ended by itself is."""
    served, *_ = pool("cpu:0")
    async with served:
        pass

    assert 0.0 == served.stalled_for()


async def test_the_half_of_a_batch_that_fails_does_not_count_as_stalled_from_its_beginning():
    """The other half was answered meanwhile."""
    time, seen = [10.0], []
    served, hosted, copies = pool("cpu:0", clock=lambda: time[0])

    def fault(call):
        if call == "bad":
            seen.append(served.devices[0].stalled_for(time[0]))
            time[0] += 5.0
        return ValueError() if call == "bad" else None

    async with served:
        copies["cpu:0"].fault = fault
        await outcomes_of(put(served, hosted, "fine", "bad"))

    assert [0.0, 0.0] == seen


async def test_what_waits_is_counted_by_lane():
    """For each model."""
    served, hosted, _ = pool("cpu:0")
    async with served:
        hosted.paused = True
        calls = put(served, hosted, "a", "b") + put(served, hosted, "c", lane="interactive")
        sample = served._instruments.registry.get_sample_value
        depths = [
            sample("scoregate_queue_depth", {"model": "m0", "lane": lane}) for lane in ("bulk", "interactive")
        ]
        served.resume(hosted)
        await outcomes_of(calls)

    assert [2.0, 1.0] == depths


async def test_the_time_of_a_batch_is_in_the_series_of_its_device_and_the_cost_model_learns_it():
    """In seconds; an idle device shows 0."""
    time = [10.0]
    served, hosted, copies = pool("cpu:0", "cpu:1", clock=lambda: time[0], queue=NotedQueue)
    async with served:
        copies["cpu:0"].hold.clear()
        calls = put(served, hosted, "long")
        await until_idle()
        time[0] = 73.0
        stalled = [value_of(served, "scoregate_device_stalled_seconds", name) for name in ("cpu:0", "cpu:1")]
        copies["cpu:0"].hold.set()
        await outcomes_of(calls)

    assert [63.0, 0.0] == stalled
    assert [63.0] == [seconds for _, seconds, _ in hosted.queue.learnt[1:]]
    assert 63.0 == value_of(served, "scoregate_device_busy_seconds_total", "cpu:0")
    assert 0.0 == value_of(served, "scoregate_device_stalled_seconds", "cpu:0")


async def test_the_cost_model_learns_how_long_a_device_let_waiting_calls_wait_between_two_batches():
    """The event loop was busy meanwhile, as it will be before the next batch."""
    clock = Clock()
    served, hosted, copies = pool("cpu:0", clock=clock, queue=NotedQueue)

    def slow_down(result):
        clock.step = 0.5

    async with served:
        copies["cpu:0"].hold.clear()
        calls = put(served, hosted, "running")
        calls[0].result.add_done_callback(slow_down)
        await until_idle()
        calls += put(served, hosted, "waiting")
        copies["cpu:0"].hold.set()
        await outcomes_of(calls)

    assert [0.0, 0.5] == [gap_s for *_, gap_s in hosted.queue.learnt[1:]]


async def test_the_gap_before_a_batch_that_is_split_counts_once():
    """It was before the first half."""
    now = [0.0]
    served, hosted, copies = pool("cpu:0", clock=lambda: now[0], queue=NotedQueue)
    whole = copies["cpu:0"].score

    def score(batch):
        if len(batch) > 2:
            raise MemoryError
        return whole(batch)

    async with served:
        copies["cpu:0"].score = score
        calls = put(served, hosted, *range(4))
        now[0] = 0.5  # the event loop was busy
        assert [*range(4)] == await outcomes_of(calls)

    assert [(2, 0.5), (2, 0.0)] == [(cost, gap_s) for cost, _, gap_s in hosted.queue.learnt[1:]]
