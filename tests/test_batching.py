"""Queues and batches: which calls are next, and how long what waits will take."""

import asyncio
import math
from collections import deque

import pytest

from models.base import Prepared
from service.serving.batching import Entry, Shares, Ticket, take_batch
from service.serving.pace import Pace
from service.serving.queue import Queue

pytestmark = pytest.mark.anyio

EVEN = Shares(1.0, 1.0)


def entry(cost=1, arrived=0.0, lane="interactive", deadline=math.inf):
    outcome = asyncio.get_running_loop().create_future()
    return Entry(Prepared(cost, None), Ticket(lane, deadline), arrived, outcome)


def taken(interactive=(), bulk=(), *, shares=EVEN, credit=0.0, now=0.0, **limits):
    lanes = {"interactive": deque(interactive), "bulk": deque(bulk)}
    return take_batch(lanes, shares, credit, now, **{"max_items": 99, "max_cost": 99, **limits})


def queue(**limits):
    return Queue(**{"max_items": 9, "max_cost": 99, "max_waiting": 999, **limits})


# --- which calls are next -----------------------------------------------------------------------


async def test_interactive_calls_go_first_and_bulk_calls_fill_what_is_left():
    """Within a lane the oldest goes first."""
    early, late, bulk = entry(), entry(), entry(lane="bulk")

    assert [early, late, bulk] == taken([early, late], [bulk], shares=Shares(9.0, 1.0))[0]


async def test_bulk_calls_that_fill_a_batch_make_it_take_at_most_twice_the_time():
    """Twice a + b * 3 here; the rest of bulk is the next batch, which nobody urgent waits for."""
    for fixed, bulk in ((0.0, 3), (4.0, 7), (100.0, 20)):
        batch, _ = taken(
            [entry() for _ in range(3)],
            [entry(lane="bulk") for _ in range(20)],
            shares=Shares(9.0, 1.0),
            fixed=fixed,
        )
        assert ["interactive"] * 3 + ["bulk"] * bulk == [one.ticket.lane for one in batch]


async def test_bulk_calls_get_their_share_of_every_batch_while_both_wait():
    """With weights 4 to 1, every fifth token is theirs, in this batch or a later one."""
    shares = Shares(4.0, 1.0, ageing_s=1e9)
    lanes = {
        "interactive": deque(entry() for _ in range(100)),
        "bulk": deque(entry(lane="bulk") for _ in range(100)),
    }
    credit, got = 0.0, []
    for _ in range(10):
        batch, credit = take_batch(lanes, shares, credit, 0.0, max_items=5, max_cost=99)
        got += [entry.ticket.lane for entry in batch]

    assert 10 == got.count("bulk")


async def test_bulk_calls_get_more_the_longer_they_wait_but_never_most():
    """Ageing: the share doubles with each `ageing_s`, up to one token for each interactive one."""
    shares = Shares(9.0, 1.0, ageing_s=10.0)

    assert pytest.approx([1 / 9, 2 / 9, 1.0]) == [shares.owed(waited) for waited in (0.0, 10.0, 1e6)]


async def test_a_share_is_not_saved_up_while_there_is_nothing_to_spend_it_on():
    """Where no bulk call is left, the credit is gone."""
    assert 0.0 == taken([entry()], [entry(lane="bulk")], credit=50.0)[1]


async def test_a_batch_ends_at_its_cost_and_at_its_number():
    """Whatever comes first."""
    assert 2 == len(taken([entry(cost=4) for _ in range(4)], max_cost=8)[0])
    assert 3 == len(taken([entry(cost=4) for _ in range(4)], max_items=3)[0])


async def test_a_call_too_costly_for_any_batch_goes_alone():
    """No call can block a queue for good."""
    huge, small = entry(cost=100), entry()

    assert [huge] == taken([huge, small], max_cost=8)[0]


async def test_callers_who_left_and_calls_that_are_too_late_never_reach_the_device():
    """The one is dropped, the other is told which stage it ran out of time in."""
    gone, late, there = entry(), entry(deadline=1.0), entry()
    gone.outcome.cancel()

    assert [there] == taken([gone, late, there], now=1.0, max_items=1)[0]
    assert "stage queue" in late.outcome.result().detail


# --- what waits ---------------------------------------------------------------------------------


async def test_what_waits_is_counted_once_however_it_leaves():
    """Taken or cancelled, in whatever order: the depth and the cost come back to nothing."""
    waiting = queue(max_items=2)
    waiting.finished(cost=1, seconds=1.0)
    entries = [waiting.put(Prepared(10, n), Ticket("bulk"), now=0.0) for n in range(5)]
    entries[1].outcome.cancel()
    await asyncio.sleep(0)
    assert (4, 40.0) == (waiting.depth("bulk"), waiting.drains("bulk"))

    batch = waiting.take(0.0)
    batch[0].outcome.cancel()
    await asyncio.sleep(0)
    assert [0, 2] == [entry.prepared.data for entry in batch]
    assert (2, 20.0) == (waiting.depth("bulk"), waiting.drains("bulk"))
    assert [3, 4] == [entry.prepared.data for entry in waiting.take(0.0)]
    assert (0, 0.0, "") == (waiting.depth("bulk"), waiting.drains("bulk"), waiting.waiting)


async def test_a_lifted_call_takes_its_place_by_arrival():
    """Before interactive calls that came later, behind those that came earlier."""
    waiting = queue()
    first = waiting.put(Prepared(1, None), Ticket("interactive"), now=1.0)
    bulk = waiting.put(Prepared(1, None), Ticket("bulk"), now=2.0)
    last = waiting.put(Prepared(1, None), Ticket("interactive"), now=3.0)
    waiting.lift(bulk)

    assert (3, 0) == (waiting.depth("interactive"), waiting.depth("bulk"))
    assert [first, bulk, last] == waiting.take(4.0)


async def test_a_batch_stays_under_its_time_by_the_measured_pace():
    """Batches of 10 and 20 tokens took 2 and 3 seconds: 1 + 0.1 n, so that 4 seconds hold 30 tokens."""
    waiting = queue(max_batch_s=4.0)
    for _ in range(20):
        waiting.finished(cost=10, seconds=2.0)
        waiting.finished(cost=20, seconds=3.0)
    for _ in range(9):
        waiting.put(Prepared(10, None), Ticket("bulk"), now=0.0)

    assert pytest.approx((1.0, 0.1)) == (waiting.pace.fixed, waiting.pace.slope)
    assert 3 == len(waiting.take(0.0))


async def test_out_of_memory_halves_the_budget_which_recovers_slowly():
    """From 80 tokens to 40, and back in a dozen batches or so."""
    waiting = queue(max_cost=80, max_items=99)
    waiting.ran_out_of_memory(cost=80)
    sizes = []
    for _ in range(20):
        for _ in range(9):
            waiting.put(Prepared(10, None), Ticket("bulk"), now=0.0)
        sizes.append(len(waiting.take(0.0)))
        waiting.finished(cost=1, seconds=0.0)
        while waiting.take(0.0):
            pass

    assert (4, 8) == (sizes[0], sizes[-1])
    assert sizes == sorted(sizes)
    assert 8 not in sizes[:10]


async def test_a_model_asked_single_calls_for_long_is_asked_more_at_once_when_more_wait():
    """By a measured call of 180 ms only one would fit into 250 ms; two are tried, which tells a and b."""
    waiting = queue(max_batch_s=0.25, max_items=32, max_cost=10_000)
    for _ in range(100):
        waiting.finished(cost=10, seconds=0.182)
    for _ in range(40):
        waiting.put(Prepared(10, None), Ticket("interactive"), now=0.0)
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
        waiting.put(Prepared(10, None), Ticket("interactive"), now=0.0)

    assert 34 == len(waiting.take(0.0))


def test_a_fixed_part_once_known_is_not_forgotten_over_batches_of_one_size():
    """A night of single calls tells nothing of a; yesterday did."""
    pace = Pace()
    for cost in (10, 20) * 20:
        pace.note(cost, seconds=1.0 + 0.1 * cost)
    for _ in range(1000):
        pace.note(10, seconds=2.0)

    assert pytest.approx((1.0, 0.1)) == (pace.fixed, pace.slope)
    assert pytest.approx(12.0) == pace.drains(100, largest=50)


def test_a_pace_of_one_size_of_batch_knows_no_fixed_part():
    """All of it is laid on the tokens, so that larger batches are tried with care."""
    pace = Pace()
    assert (math.inf, 0.0) == (pace.within(1.0), pace.drains(100, 1000))

    pace.note(cost=10, seconds=1.0)
    assert pytest.approx((0.0, 0.1, 50.0, 10.0)) == (
        pace.fixed,
        pace.slope,
        pace.within(5.0),
        pace.drains(100, 1000),
    )
