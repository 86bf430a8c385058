"""Batches: which of the calls that wait are next."""

import math
from collections import deque
from random import Random

import pytest

from models.core.contract import Prepared
from service.core.lanes import Shares
from service.serving.batcher.batching import TokenTally, take_batch
from service.serving.job import Job

pytestmark = pytest.mark.anyio

EVEN = Shares(1.0, 1.0)


def queued(cost=1, arrived=0.0, lane="interactive", deadline=math.inf):
    return Job(Prepared(cost, None), lane, arrived, deadline)


def taken(interactive=(), bulk=(), *, shares=EVEN, credit=0.0, now=0.0, **limits):
    lanes = {"interactive": deque(interactive), "bulk": deque(bulk)}
    before = {lane: list(calls) for lane, calls in lanes.items()}
    found = take_batch(lanes, shares, credit, now, **{"max_items": 99, "max_cost": 99, **limits})
    assert before == {lane: list(calls) for lane, calls in lanes.items()}
    return found


async def test_interactive_calls_go_first_and_bulk_calls_fill_what_is_left():
    """Within a lane the oldest goes first."""
    early, late, bulk = queued(), queued(), queued(lane="bulk")

    assert [early, late, bulk] == taken([early, late], [bulk], shares=Shares(9.0, 1.0))[0]


async def test_bulk_calls_that_fill_a_batch_make_it_take_at_most_half_as_long_again():
    """Half the fixed part and 2 tokens here; the rest is the next batch, which nobody urgent waits for."""
    for fixed, bulk in ((0.0, 2), (4.0, 4), (100.0, 20)):
        batch, _ = taken(
            [queued() for _ in range(4)],
            [queued(lane="bulk") for _ in range(20)],
            shares=Shares(9.0, 1.0),
            fixed_cost=fixed,
        )
        assert ["interactive"] * 4 + ["bulk"] * bulk == [one.lane for one in batch]


async def test_bulk_calls_get_their_share_of_every_batch_while_both_wait():
    """With weights 4 to 1, every fifth token is theirs, in this batch or a later one."""
    shares = Shares(4.0, 1.0, ageing_s=1e9)
    lanes = {
        "interactive": deque(queued() for _ in range(100)),
        "bulk": deque(queued(lane="bulk") for _ in range(100)),
    }
    credit, got = 0.0, []
    for _ in range(10):
        batch, credit = take_batch(lanes, shares, credit, 0.0, max_items=5, max_cost=99)
        got += [call.lane for call in batch]
        lanes = {lane: deque(call for call in calls if call not in batch) for lane, calls in lanes.items()}

    assert 10 == got.count("bulk")


async def test_bulk_calls_get_more_the_longer_they_wait_but_never_most():
    """Ageing: the share doubles with each `ageing_s`, up to one token for each interactive one."""
    shares = Shares(9.0, 1.0, ageing_s=10.0)

    assert pytest.approx([1 / 9, 2 / 9, 1.0]) == [shares.earned(waited) for waited in (0.0, 10.0, 1e6)]


async def test_a_share_is_not_saved_up_while_there_is_nothing_to_spend_it_on():
    """Where no bulk call is left, the credit is gone."""
    assert 0.0 == taken([queued()], [queued(lane="bulk")], credit=50.0)[1]


def about(picture, cost=7, shared=6, **more):
    call = queued(**more)
    call.prepared = Prepared(cost, None, (picture, shared))
    return call


async def test_what_calls_share_counts_once_in_a_batch():
    """Four questions about a picture of 6 tokens are 10 tokens; another picture is 7 more."""
    calls = [*(about("a") for _ in range(4)), about("b"), about("a")]

    assert calls[:4] == taken(calls, max_cost=16)[0]
    assert calls[:5] == taken(calls, max_cost=17)[0]
    assert calls == taken(calls, max_cost=18)[0]


async def test_bulk_calls_pay_and_earn_what_a_batch_has_more_of():
    """Of the 7 tokens that the first call earns, one about its picture takes 1, and another picture's 7."""
    batch, credit = taken(
        [about("a"), about("a")],
        [about("a", lane="bulk"), about("b", lane="bulk"), about("b", lane="bulk")],
        max_items=3,
    )

    assert ["interactive", "bulk", "interactive"] == [call.lane for call in batch]
    assert 7.0 - 1 + 1 == credit


async def test_bulk_calls_fill_a_batch_by_what_they_add():
    """Half as long again as 8 tokens is 4 tokens: four calls about its picture, and none about another."""
    urgent = [about("a"), about("a")]
    same, other = ([about(picture, lane="bulk") for _ in range(9)] for picture in ("a", "b"))

    assert 6 == len(taken(urgent, same, shares=Shares(9.0, 1.0), fixed_cost=0.0)[0])
    assert 2 == len(taken(urgent, other, shares=Shares(9.0, 1.0), fixed_cost=0.0)[0])


@pytest.mark.parametrize("seed", range(10))
async def test_a_tally_of_calls_is_that_of_the_calls_that_are_left(seed):
    """In whatever order they come and go: each shared part once, and nothing for none."""
    random = Random(seed)
    calls = [
        Prepared(random.randint(9, 12), None, random.choice([None, ("a", 9), ("b", 5)])) for _ in range(20)
    ]
    tally = TokenTally(calls)
    for left in range(20, -1, -1):
        shared = dict(each.shared for each in calls if each.shared)
        own = sum(each.cost - (each.shared[1] if each.shared else 0) for each in calls)
        assert own + sum(shared.values()) == tally.total
        if left:
            tally.remove(calls.pop(random.randrange(left)))

    assert (0, {}) == (tally.total, tally._sharing)


async def test_a_batch_ends_at_its_cost_and_at_its_number():
    """Whatever comes first."""
    assert 2 == len(taken([queued(cost=4) for _ in range(4)], max_cost=8)[0])
    assert 3 == len(taken([queued(cost=4) for _ in range(4)], max_items=3)[0])


async def test_a_call_too_costly_for_any_batch_goes_alone():
    """No call can block a queue for good."""
    huge, small = queued(cost=100), queued()

    assert [huge] == taken([huge, small], max_cost=8)[0]


async def test_no_batch_has_a_call_whose_caller_left_or_whose_deadline_has_passed():
    """To choose a batch changes neither the lanes nor a call."""
    gone, late, there = queued(), queued(deadline=1.0), queued()
    gone.result.cancel()
    lane = deque([gone, late, there])

    assert [there] == taken(lane, now=1.0, max_items=1)[0]
    assert 4 == len(taken([queued(), *lane, queued(), gone, queued()], now=1.0, max_items=4)[0])
    assert not late.result.done()
