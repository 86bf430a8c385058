"""Queues: what waits, how large a batch may be, and how long what waits will take."""

import weakref

import pytest

from models.core.contract import Prepared
from service.core.lanes import Shares
from service.serving.admission import Demand
from service.serving.batcher.batching import Queue
from service.serving.job import Job

pytestmark = pytest.mark.anyio


class Picture:
    """One that is prepared; weak references to it are possible."""


def queue(**limits):
    return Queue(**{"max_items": 9, "max_cost": 99, "max_waiting": 999, **limits})


def put(waiting, cost, *, lane, data=None, now=0.0):
    call = Job(Prepared(cost, data), lane, now)
    waiting.put(call)
    return call


def drain_s(waiting):
    """The predicted seconds for all bulk calls."""
    return waiting.estimate_s(waiting.waiting_cost("bulk"))


async def test_what_waits_is_counted_once_however_it_leaves():
    """Taken or cancelled, in whatever order: the depth and the cost come back to nothing."""
    waiting = queue(max_items=2)
    waiting.finished(cost=1, seconds=1.0)
    calls = [put(waiting, 10, lane="bulk", data=n) for n in range(5)]
    calls[1].result.cancel()
    assert (4, 40.0) == (waiting.depth["bulk"], drain_s(waiting))

    batch = waiting.take(0.0)
    batch[0].result.cancel()
    assert [0, 2] == [call.prepared.data for call in batch]
    assert (2, 20.0) == (waiting.depth["bulk"], drain_s(waiting))
    assert [3, 4] == [call.prepared.data for call in waiting.take(0.0)]
    assert (0, 0.0, "") == (waiting.depth["bulk"], drain_s(waiting), waiting.waiting)


async def test_calls_that_share_a_picture_wait_as_what_they_add():
    """A picture counts once in each lane, whichever call is left; a call's usual cost is what it adds."""
    waiting = queue(max_cost=12)
    waiting.finished(cost=1, seconds=1.0)
    calls = []
    for _ in range(3):
        calls.append(Job(Prepared(10, None, ("a", 9)), "bulk", 0.0))
        waiting.put(calls[-1])
    assert (12.0, True) == (drain_s(waiting), waiting.fills_a_batch)
    calls[0].result.cancel()
    calls[1].promote()
    assert [10, 10] == [waiting.waiting_cost(lane) for lane in ("interactive", "bulk")]
    calls[2].promote()
    assert [11, 0] == [waiting.waiting_cost(lane) for lane in ("interactive", "bulk")]
    assert pytest.approx(10 - 9 * 0.1 - 8.1 * 0.1) == waiting.cost_of(Demand(1, 0))
    assert calls[1:] == waiting.take(0.0)
    assert 0 == waiting.waiting_cost("interactive")


async def test_callers_who_left_and_calls_that_are_too_late_never_reach_the_device():
    """The one is dropped, the other gets the error that names the stage in which its time ran out."""
    waiting = queue(max_items=1)
    gone, late, there, after = (put(waiting, 1, lane="interactive", data=n) for n in range(4))
    gone.result.cancel()
    late.deadline = 1.0

    assert [there] == waiting.take(1.0)
    assert "stage queue" in late.result.result().outcome.detail
    assert 0.0 == late.result.result().ran_s
    assert (1, [after]) == (waiting.depth["interactive"], waiting.take(1.0))
    assert [] == waiting.take(1.0)


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_what_is_not_counted_is_freed(lane):
    """A call whose caller leaves goes with its pictures, whether a batch is ever taken or not."""
    waiting, pictures = queue(), weakref.WeakSet()
    stays = put(waiting, 1, lane=lane, data=Picture())
    for _ in range(3):
        call = put(waiting, 1, lane=lane, data=Picture())
        pictures.add(call.prepared.data)
        call.cancel()
    del call

    assert not pictures
    assert [stays] == waiting.take(0.0)


async def test_a_promoted_call_takes_its_place_by_arrival():
    """Before interactive calls that came later, behind those that came earlier."""
    waiting = queue()
    first = put(waiting, 1, lane="interactive", now=1.0)
    bulk = put(waiting, 1, lane="bulk", now=2.0)
    last = put(waiting, 1, lane="interactive", now=3.0)
    bulk.promote()

    assert "interactive" == bulk.lane
    assert (3, 0) == (waiting.depth["interactive"], waiting.depth["bulk"])
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


async def test_a_call_that_is_promoted_while_it_runs_does_not_wait_again():
    """Its batch answers it."""
    waiting = queue()
    call = put(waiting, 10, lane="bulk")
    waiting.take(0.0)
    call.promote()

    assert {"interactive": 0, "bulk": 0} == waiting.depth


async def test_a_promoted_call_goes_behind_those_that_came_at_the_same_time():
    """They were interactive before it."""
    waiting = queue()
    bulk, first = put(waiting, 1, lane="bulk", now=1.0), put(waiting, 1, lane="interactive", now=1.0)
    bulk.promote()

    assert [first, bulk] == waiting.take(1.0)


async def test_what_waits_is_predicted_in_batches_of_as_many_usual_calls_as_fit():
    """Four calls of 10 tokens, with a second for each batch and a tenth of one for each token."""
    waiting = queue(max_items=4, max_cost=1000)
    for cost in (10, 20) * 50:
        waiting.finished(cost, seconds=1.0 + 0.1 * cost)
    for _ in range(5):
        put(waiting, 10, lane="bulk")
    waiting.pending.begin("bulk", 3, 0.0)

    assert pytest.approx(2 * 1.0 + 8.0) == drain_s(waiting)


async def test_however_little_memory_is_left_a_batch_of_one_token_is_tried():
    """Or nothing would be, and memory could not prove to hold more."""
    waiting = queue()
    waiting.ran_out_of_memory(cost=1)
    for _ in range(2):
        put(waiting, 1, lane="bulk")

    assert [1, 1] == [len(waiting.take(0.0)), len(waiting.take(0.0))]


def test_a_lane_is_full_at_its_last_token():
    """And earlier where others have reserved a part of it."""
    waiting = queue(max_waiting=100)
    put(waiting, 99, lane="bulk")
    assert (False, True) == (waiting.is_full("bulk"), waiting.is_full("bulk", 1.0))
    put(waiting, 1, lane="bulk")

    assert (True, False) == (waiting.is_full("bulk"), waiting.is_full("interactive"))


def test_work_is_what_waits_what_is_prepared_and_what_was_admitted():
    """Less than a token that is left of reservations is a rounding error."""
    waiting = queue()
    assert not waiting.has_work
    with waiting.pending.expecting("bulk", 1, lambda: 0.0):
        assert waiting.has_work
    waiting.reserved["bulk"] = 1.0
    assert waiting.has_work
    waiting.reserved["bulk"] = 0.1 + 0.2 - 0.3
    assert not waiting.has_work
    put(waiting, 1, lane="bulk")
    assert waiting.has_work


def test_a_request_is_reckoned_in_calls_as_they_were_lately_and_in_text_beyond_the_usual():
    """Ten tokens a call with up to 400 characters; then four characters are a token."""
    waiting = queue()
    put(waiting, 10, lane="bulk")

    costs = [waiting.cost_of(Demand(2, characters)) for characters in (0, 800, 804, 4800)]
    assert [20.0, 20.0, 21.0, 1020.0] == costs


def test_a_full_batch_is_limited_by_its_number_and_by_its_cost_and_holds_one_call_at_least():
    """Calls without a cost are limited by their number."""
    waiting = queue(max_items=9, max_cost=99)

    assert [9, 9, 4, 1, 1] == [waiting.full_batch(cost) for cost in (0, 1, 24, 99, 1000)]


def lanes_of(waiting, batches, *, urgent=()):
    """Whose each batch of one call is; those whose number is in *urgent* are for interactive calls alone."""
    return [call.lane for n in range(batches) for call in waiting.take(0.0, urgent=n in urgent)]


@pytest.mark.parametrize("urgent", [(), (1,), (0, 1)])
def test_what_bulk_calls_are_owed_is_kept_from_batch_to_batch(urgent):
    """With weights of 4 and 1 every fifth; batches of urgent calls beside them count for nothing."""
    waiting = queue(max_items=1, shares=Shares(4.0, 1.0, ageing_s=1e9))
    for lane in ("interactive", "bulk"):
        for _ in range(20):
            put(waiting, 1, lane=lane)

    four = ["interactive"] * (4 + len(urgent))
    assert [*four, "bulk", *["interactive"] * 4, "bulk"] == lanes_of(waiting, 10 + len(urgent), urgent=urgent)


def test_bulk_calls_fill_up_a_batch_by_the_fixed_part_of_its_time():
    """A second of it takes as long as ten tokens: half of them, and half of the four that are urgent."""
    waiting = queue(max_items=99)
    for cost in (10, 20) * 50:
        waiting.finished(cost, seconds=1.0 + 0.1 * cost)
    put(waiting, 4, lane="interactive")
    for _ in range(20):
        put(waiting, 1, lane="bulk")

    assert 1 + 6 <= len(waiting.take(0.0)) <= 1 + 7


def test_a_call_costs_what_calls_did_lately():
    """The first says all, and each later one a tenth."""
    waiting = queue()
    put(waiting, 10, lane="bulk")
    put(waiting, 20, lane="bulk")

    assert pytest.approx(11.0) == waiting.cost_of(Demand(1))


async def test_the_gap_before_a_batch_is_part_of_the_time_for_what_waits():
    """A device that stands idle between batches needs it again."""
    waiting = queue()
    waiting.finished(cost=10, seconds=1.0, gap_s=0.5)
    put(waiting, 10, lane="bulk")

    assert pytest.approx(1.5) == drain_s(waiting)
