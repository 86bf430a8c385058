"""Queues: what waits, how large a batch may be, and how long what waits will take."""

import pytest

from models.contract import Prepared
from service.serving.batcher.batch import QueuedCall
from service.serving.batcher.queue import Queue

pytestmark = pytest.mark.anyio


def queue(**limits):
    return Queue(**{"max_items": 9, "max_cost": 99, "max_waiting": 999, **limits})


def put(waiting, cost, *, lane, data=None, now=0.0):
    call = QueuedCall(Prepared(cost, data), lane, now)
    waiting.put(call)
    return call


async def test_what_waits_is_counted_once_however_it_leaves():
    """Taken or cancelled, in whatever order: the depth and the cost come back to nothing."""
    waiting = queue(max_items=2)
    waiting.finished(cost=1, seconds=1.0)
    calls = [put(waiting, 10, lane="bulk", data=n) for n in range(5)]
    calls[1].result.cancel()
    assert (4, 40.0) == (waiting.depth("bulk"), waiting.drain_s("bulk"))

    batch = waiting.take(0.0)
    batch[0].result.cancel()
    assert [0, 2] == [call.prepared.data for call in batch]
    assert (2, 20.0) == (waiting.depth("bulk"), waiting.drain_s("bulk"))
    assert [3, 4] == [call.prepared.data for call in waiting.take(0.0)]
    assert (0, 0.0, "") == (waiting.depth("bulk"), waiting.drain_s("bulk"), waiting.waiting)


async def test_a_promoted_call_takes_its_place_by_arrival():
    """Before interactive calls that came later, behind those that came earlier."""
    waiting = queue()
    first = put(waiting, 1, lane="interactive", now=1.0)
    bulk = put(waiting, 1, lane="bulk", now=2.0)
    last = put(waiting, 1, lane="interactive", now=3.0)
    waiting.promote(bulk)

    assert (3, 0) == (waiting.depth("interactive"), waiting.depth("bulk"))
    assert [first, bulk, last] == waiting.take(4.0)


async def test_a_batch_stays_under_its_time_by_the_measured_pace():
    """Batches of 10 and 20 tokens took 2 and 3 seconds: 1 + 0.1 n, so that 4 seconds hold 30 tokens."""
    waiting = queue(max_batch_s=4.0)
    for _ in range(20):
        waiting.finished(cost=10, seconds=2.0)
        waiting.finished(cost=20, seconds=3.0)
    for _ in range(9):
        put(waiting, 10, lane="bulk")

    assert pytest.approx((1.0, 0.1)) == (waiting.cost_model.fixed_s, waiting.cost_model.per_token_s)
    assert 3 == len(waiting.take(0.0))


async def test_out_of_memory_halves_the_budget_which_recovers_slowly():
    """From 80 tokens to 40, and back in a dozen batches or so."""
    waiting = queue(max_cost=80, max_items=99)
    waiting.ran_out_of_memory(cost=80)
    sizes = []
    for _ in range(20):
        for _ in range(9):
            put(waiting, 10, lane="bulk")
        sizes.append(len(waiting.take(0.0)))
        waiting.finished(cost=1, seconds=0.0)
        while waiting.take(0.0):
            pass

    assert (4, 8) == (sizes[0], sizes[-1])
    assert sizes == sorted(sizes)
    assert 8 not in sizes[:10]


async def test_a_model_asked_single_calls_for_long_is_asked_more_at_once_when_more_wait():
    """By calls of 180 ms only one would fit into 250 ms; two are tried, which tells the fixed part."""
    waiting = queue(max_batch_s=0.25, max_items=32, max_cost=10_000)
    for _ in range(100):
        waiting.finished(cost=10, seconds=0.182)
    for _ in range(40):
        put(waiting, 10, lane="interactive")
    sizes = []
    while batch := waiting.take(0.0):
        sizes.append(len(batch))
        waiting.finished(cost=10 * len(batch), seconds=0.18 + 0.002 * len(batch))

    assert [2, 32, 6] == sizes


async def test_where_one_call_takes_too_long_a_batch_may_take_twice_its_time():
    """A limit that no batch can keep would have every call go alone, for good."""
    waiting = queue(max_batch_s=0.25, max_items=99, max_cost=10_000)
    for cost in (10, 20) * 20:
        waiting.finished(cost, seconds=0.29 + 0.0009 * cost)
    for _ in range(40):
        put(waiting, 10, lane="interactive")

    assert 34 == len(waiting.take(0.0))
