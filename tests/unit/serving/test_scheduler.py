"""The turns of a device's models, without a device, an event loop or a clock."""

import math
from itertools import zip_longest

import pytest

from models.core.contract import Prepared
from service.serving.admission import Demand
from service.serving.batcher.batching import Queue
from service.serving.batcher.scheduler import Capacity, HostedModel, RunningBatch, Scheduler
from service.serving.job import Job, JobResult
from tests.support.devices import begins


def scheduler(models=1, shares=None, cores=1, large=(), **limits):
    """A scheduler of so many models, those of *large* large, on a CPU of *cores*, and its hosted models."""
    limits = {"max_items": 4, "max_cost": 1000, "max_waiting": 10_000, **limits}
    hosted_models = [
        HostedModel(f"m{n}", None, Queue(shares=shares, **limits), large=each)
        for n, each in zip_longest(range(models), large)
    ]
    return Scheduler(hosted_models, 0.0, {"": Capacity(cores, cores)}), *hosted_models


def put(turns, hosted, *, lane="interactive", now=0.0, cost=1):
    call = Job(Prepared(cost, None), lane, now)
    turns.put(hosted, call)
    return call


def learns(hosted, *, fixed_s, per_token_s=0.0):
    for cost in (1, 2) * 50:
        hosted.queue.finished(cost, fixed_s + per_token_s * cost)


def run(turns, hosted, now, seconds):
    """A batch that takes so long; the calls in it."""
    return ended(turns, turns.begin(hosted, now), now, seconds)


def ended(turns, turn, now, seconds):
    """The calls of a batch that began and took so long."""
    for call in turn.jobs:
        call.begin(now)
        call.finish(JobResult("outcome", call.waited_s, seconds))
    turns.progress = now + seconds
    turns.end(turn, now + seconds)
    return turn.jobs


def test_the_model_that_was_charged_least_comes_next():
    """Seconds over weight: after one second of interactive work comes the other model, of bulk work too."""
    turns, first, second = scheduler(2, max_items=1)
    for _ in range(3):
        put(turns, first)
        put(turns, second, lane="bulk")
    order, now = [], 0.0
    while isinstance(batch := begins(turns, now), RunningBatch):
        order.append(batch.hosted.name)
        ended(turns, batch, now, 1.0)
        now += 1.0

    assert ["m0", "m1", "m0", "m0", "m1", "m1"] == order
    assert pytest.approx((3 / 9, 3.0)) == (first.charged, second.charged)


def test_a_turn_ahead_waits_for_the_one_before_it():
    """Two of a second each are under way to one place: whoever comes now waits for both."""
    _, hosted = scheduler(max_items=1)
    learns(hosted, fixed_s=1.0)
    turns = Scheduler([hosted], 0.0, ahead=1)
    for _ in range(3):
        put(turns, hosted)
    turns.begin(hosted, 0.0)
    assert turns.has_slot
    turns.begin(hosted, 0.5)

    assert not turns.has_slot
    assert pytest.approx(1.5 + 1.0) == turns.forecast(hosted, "interactive", Demand(), 0.5).wait_s


def test_a_model_saves_up_no_turns_while_it_has_no_work():
    """Who comes late starts where the others stand."""
    turns, first, second = scheduler(2, max_items=1)
    put(turns, first)
    run(turns, first, 0.0, 90.0)
    put(turns, first, now=90.0)
    run(turns, first, 90.0, 9.0)
    put(turns, second, now=99.0)

    assert pytest.approx(10.0) == second.charged
    assert begins(turns, 99.0).hosted is second


def test_a_full_batch_and_one_that_nobody_is_on_the_way_to_go_at_once():
    """And so does one whose callers have all left."""
    turns, hosted = scheduler(max_items=2, linger_s=60.0)
    learns(hosted, fixed_s=1.0)
    gone = put(turns, hosted)
    gone.result.cancel()
    assert -math.inf == turns.waits_until(hosted, hosted.queue.pending.groups, 0.0)

    put(turns, hosted)
    put(turns, hosted)
    assert -math.inf == turns.waits_until(hosted, hosted.queue.pending.groups, 0.0)

    turns, hosted = scheduler()
    learns(hosted, fixed_s=1.0)
    put(turns, hosted)
    assert -math.inf == turns.waits_until(hosted, hosted.queue.pending.groups, 0.0)


def test_a_batch_begins_in_the_moment_in_which_its_wait_ends():
    """And not before."""
    turns, hosted = scheduler(linger_s=3.0)
    put(turns, hosted, now=1.0)

    assert 4.0 == begins(turns, 1.0)
    assert 1 == len(begins(turns, 4.0).jobs)


def test_an_unfull_batch_has_one_wait_for_company_and_for_pending_calls():
    """The longer of both: `linger_s` from the first arrival, and twice the fixed part for known calls."""
    turns, hosted = scheduler(linger_s=3.0)
    pending = hosted.queue.pending
    put(turns, hosted, now=10.0)
    assert 13.0 == turns.waits_until(hosted, pending.groups, 11.0)

    learns(hosted, fixed_s=4.0)
    group = pending.begin("interactive", 2, 11.0)
    known = frozenset(pending.groups)
    assert pytest.approx(19.0) == turns.waits_until(hosted, known, 11.0)
    pending.begin("interactive", 1, 12.0)
    pending.end(group, 12.0)
    assert 13.0 == turns.waits_until(hosted, known, 11.0), "who set out later is not waited for"


@pytest.mark.parametrize(
    ("lane", "calls", "until"), [("interactive", 1, 4.5), ("interactive", 9, 3.0), ("bulk", 9, 4.5)]
)
def test_it_waits_on_for_calls_that_all_come_in_time_and_for_bulk(lane, calls, until):
    """One was ready at 2.5, and about one comes each second; a batch that is saved is worth two."""
    turns, hosted = scheduler()
    pending = hosted.queue.pending
    learns(hosted, fixed_s=1.0)
    pending.end(pending.begin(lane, 1, 0.0), 1.0)
    pending.begin(lane, calls, 1.0)
    first = pending.begin(lane, 1, 1.0)
    known = frozenset(pending.groups)
    pending.end(first, 2.5)
    put(turns, hosted, lane=lane, now=2.5)

    assert pytest.approx(until) == turns.waits_until(hosted, known, 1.0)


def test_nobody_waits_while_another_model_has_work():
    """The device is there for all."""
    turns, first, second = scheduler(2, linger_s=60.0)
    put(turns, first)
    assert 60.0 == turns.waits_until(first, first.queue.pending.groups, 0.0)
    put(turns, second)
    assert -math.inf == turns.waits_until(first, first.queue.pending.groups, 0.0)


def test_a_turn_tells_for_how_long_the_device_let_work_wait_before_it():
    """From the end of the last turn, or from the first arrival where that came later."""
    turns, hosted = scheduler(max_items=1)
    put(turns, hosted, now=1.0)
    put(turns, hosted, now=1.5)
    assert 1.0 == turns.begin(hosted, 2.0).gap_s

    turns, hosted = scheduler(max_items=1)
    put(turns, hosted, now=1.0)
    put(turns, hosted, now=1.5)
    run(turns, hosted, 1.0, 2.0)
    assert 0.25 == turns.begin(hosted, 3.25).gap_s


def test_what_all_callers_have_left_is_no_turn():
    """Nobody is charged for it."""
    turns, hosted = scheduler()
    put(turns, hosted).result.cancel()

    assert turns.begin(hosted, 1.0) is None
    assert (0.0, True) == (hosted.charged, turns.idle)


def test_waits_are_predicted_from_what_runs_and_what_waits():
    """Batches of two, of 1 s and 0.5 s a call; the one that runs is said to end 1 s after it began."""
    turns, hosted = scheduler(max_items=2)
    learns(hosted, fixed_s=1.0, per_token_s=0.5)
    for _ in range(6):
        put(turns, hosted)
    turns.begin(hosted, 0.0)

    assert pytest.approx((2.0 + 4.0, 1.0 + 4.0)) == (
        turns.forecast(hosted, "interactive", Demand(), 0.0).wait_s,
        turns.forecast(hosted, "interactive", Demand(), 1.0).wait_s,
    )
    assert pytest.approx(4.0) == turns.forecast(hosted, "interactive", Demand(), 100.0).wait_s, (
        "it is late, and nobody knows how late"
    )


def test_a_result_comes_with_its_own_timings():
    """Seconds in the queue and seconds in the batch."""
    turns, hosted = scheduler()
    call = put(turns, hosted, now=1.0)
    run(turns, hosted, 3.0, 0.5)

    assert ("outcome", 2.0, 0.5) == (
        call.result.result().outcome,
        call.result.result().waited_s,
        call.result.result().ran_s,
    )


def test_standing_still_is_told_from_being_idle():
    """It counts from the last answer, or from the call that ended the idleness."""
    turns, hosted = scheduler(max_items=1)
    assert 0.0 == turns.stalled_s(3600.0)
    put(turns, hosted, now=3600.0)
    put(turns, hosted, now=3601.0)
    assert 5.0 == turns.stalled_s(3605.0)
    run(turns, hosted, 3605.0, 1.0)
    assert 2.0 == turns.stalled_s(3608.0)


def test_interactive_work_takes_longer_by_what_bulk_calls_get_meanwhile():
    """With weights of 9 and 1, a ninth more than without them; what bulk calls wait for is all of both."""
    turns, hosted = scheduler(max_items=1)
    learns(hosted, fixed_s=1.0)
    for _ in range(9):
        put(turns, hosted)
    assert pytest.approx(9.0) == turns.forecast(hosted, "interactive", Demand(), 0.0).wait_s
    put(turns, hosted, lane="bulk")

    assert pytest.approx((10.0, 10.0)) == (
        turns.forecast(hosted, "interactive", Demand(), 0.0).wait_s,
        turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s,
    )
    put(turns, hosted, lane="bulk")
    assert pytest.approx((10.0, 11.0)) == (
        turns.forecast(hosted, "interactive", Demand(), 0.0).wait_s,
        turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s,
    )


def test_places_share_what_waits():
    """Four calls of a second each are done in two seconds by two places."""
    _, hosted = scheduler(max_items=1)
    learns(hosted, fixed_s=1.0)
    turns = Scheduler([hosted], 0.0, {"": Capacity(2)})
    for _ in range(4):
        put(turns, hosted)

    assert pytest.approx(2.0) == turns.forecast(hosted, "interactive", Demand(), 0.0).wait_s


@pytest.mark.parametrize(
    ("slots", "cores", "threads", "expected"),
    [(8, 16, 15, 0.0), (8, 16, 16, 1.0), (2, 2, 1, 0.0), (2, 2, 2, 1.0)],
)
def test_a_batch_on_several_cores_leaves_a_slot_if_it_leaves_a_core(slots, cores, threads, expected):
    """A batch of a large model takes a second on some cores of a CPU, which has eight slots at most."""
    _, small, large = scheduler(2, large=(False, True))
    learns(large, fixed_s=1.0)
    turns = Scheduler([small, large], 0.0, {"": Capacity(slots, cores)})
    put(turns, large)
    turns.begin(large, 0.0, threads=threads)

    assert pytest.approx(expected) == turns.forecast(small, "interactive", Demand(), 0.0).wait_s


def test_a_slot_is_free_when_the_first_of_two_batches_ends():
    """Whichever began first."""
    _, slow, quick = scheduler(2)
    learns(slow, fixed_s=5.0)
    learns(quick, fixed_s=3.0)
    turns = Scheduler([slow, quick], 0.0, {"": Capacity(2, 2)})
    for hosted in (slow, quick):
        put(turns, hosted)
        turns.begin(hosted, 0.0)

    assert pytest.approx(3.0) == turns.forecast(quick, "interactive", Demand(), 0.0).wait_s


def test_a_large_model_has_one_batch_at_a_time():
    """Eight slots compute what waits of a small model in an eighth of the time."""
    waits = []
    for large in (False, True):
        _, hosted = scheduler(large=[large], max_items=1)
        learns(hosted, fixed_s=1.0)
        turns = Scheduler([hosted], 0.0, {"": Capacity(8)})
        for _ in range(8):
            put(turns, hosted)
        waits.append(turns.forecast(hosted, "interactive", Demand(), 0.0).wait_s)

    assert pytest.approx([1.0, 8.0]) == waits


@pytest.mark.parametrize(("places", "expected"), [(1, (10.0, 2.0)), (2, (5.0, 1.0))])
def test_what_a_request_comes_to_is_reckoned_in_full_batches(places, expected):
    """Eight calls of ten tokens, four to a batch, of 1 s and 0.1 s a token; places work side by side."""
    _, hosted = scheduler(max_items=4)
    for cost in (10, 20) * 50:
        hosted.queue.finished(cost, 1.0 + 0.1 * cost)
    turns = Scheduler([hosted], 0.0, {"": Capacity(places)})
    put(turns, hosted, cost=10)

    extent = turns.estimate(hosted, Demand(calls=8))
    assert pytest.approx(expected) == (extent.seconds, extent.batches)


def cpu(*large, cores):
    """A scheduler's `next` for slots of a CPU, and a model for each of *large*, which says whether it is."""
    turns, *hosted_models = scheduler(len(large), cores=cores, large=large)
    return turns, lambda now, slot: turns.next(now, "", slot), *hosted_models


def test_a_slot_never_waits_for_what_the_first_one_does():
    """The large model is charged less and waits for the first slot; a small one begins on the other."""
    turns, begin, large, small = cpu(True, False, cores=2)
    small.charged = 9.0
    put(turns, large)
    put(turns, small)

    assert small is begin(0.0, 1).hosted
    assert large is begin(0.0, 0).hosted
    assert math.inf == begin(0.0, 1)


def test_the_first_slot_serves_all_models_and_the_others_small_ones():
    """A large model's batches have all cores that are free, but for one if they are of bulk calls."""
    turns, begin, large, _ = cpu(True, False, cores=4)
    for lane, threads in (("bulk", 3), ("interactive", 4)):
        put(turns, large, lane=lane)
        assert math.inf == begin(0.0, 1)
        batch = begin(0.0, 0)
        assert threads == batch.threads
        turns.end(batch, 0.0)


def test_bulk_calls_leave_the_last_core_until_a_second_after_an_interactive_call():
    """To the moment; while interactive calls wait, until something changes."""
    turns, begin, small = cpu(False, cores=2)
    put(turns, small, now=5.0)
    interactive = begin(5.0, 0)
    for _ in range(6):
        put(turns, small, lane="bulk", now=5.0)

    assert 6.0 == begin(5.5, 1)
    turns.end(interactive, 5.5)
    assert 4 == len(begin(5.5, 0).jobs), "two cores are free, of which one is left"
    assert 6.0 == begin(5.9, 1)
    assert 2 == len(begin(6.0, 1).jobs)
    assert math.inf == begin(6.0, 1)


def test_bulk_calls_leave_a_core_while_interactive_calls_wait_for_another_slot():
    """Until something changes; calls of a model that is paused do not count."""
    turns, begin, large, small = cpu(True, False, cores=2)
    put(turns, large, now=5.0)
    for _ in range(6):
        put(turns, small, lane="bulk", now=5.0)

    assert 4 == len(begin(5.0, 1).jobs)
    assert math.inf == begin(5.0, 1)
    large.paused = True
    assert 6.0 == begin(5.0, 1)


def test_a_large_model_has_the_cores_that_small_ones_leave():
    """Its calls compute beside theirs."""
    turns, begin, large, small = cpu(True, False, cores=4)
    for hosted in (large, small):
        put(turns, hosted)
    begin(0.0, 1)

    assert 3 == begin(0.0, 0).threads


def test_bulk_calls_of_a_large_model_have_the_last_core_too():
    """None is left that they could leave to small models."""
    turns, begin, large, small = cpu(True, False, cores=2)
    for hosted in (large, small):
        put(turns, hosted, lane="bulk")
    begin(0.0, 1)

    assert 1 == begin(0.0, 0).threads


def test_no_batch_begins_on_a_cpu_whose_cores_are_all_in_use():
    """Whatever waits."""
    turns, begin, large, small = cpu(True, False, cores=2)
    for hosted in (large, small):
        put(turns, hosted)
    assert 2 == begin(0.0, 0).threads

    assert math.inf == begin(0.0, 1)


def test_a_slot_waits_for_its_batch_to_fill_and_begins_it_then():
    """Its wait ends with the groups that were known when it began; the next batch has its own."""
    turns, hosted = scheduler()
    learns(hosted, fixed_s=4.0)
    put(turns, hosted, now=10.0)
    group = hosted.queue.pending.begin("interactive", 2, 10.0)
    until = begins(turns, 10.0)
    assert pytest.approx(18.0) == until
    assert until == begins(turns, 12.0), "the same wait goes on"
    put(turns, hosted, now=12.0)
    hosted.queue.pending.end(group, 12.0)
    later = hosted.queue.pending.begin("interactive", 2, 12.0)
    batch = begins(turns, 12.0)
    assert 2 == len(batch.jobs)

    turns.end(batch, 13.0)
    put(turns, hosted, now=13.0)
    assert pytest.approx(21.0) == begins(turns, 13.0)
    hosted.queue.pending.end(later, 13.0)


def test_calls_whose_callers_have_left_are_no_batch_and_the_next_model_begins():
    """A deadline that has passed is found when the batch is taken."""
    turns, first, second = scheduler(2)
    put(turns, first).deadline = 1.0
    put(turns, second)

    assert second is begins(turns, 1.0).hosted
    assert math.inf == begins(turns, 1.0)


def test_calls_that_come_just_as_fast_as_waiting_pays_are_waited_for():
    """One every two seconds, and a batch that is saved is worth two."""
    turns, hosted = scheduler()
    hosted.queue.cost_model.fixed_s = 1.0
    pending = hosted.queue.pending
    pending.end(pending.begin("interactive", 1, 0.0), 2.0)
    pending.begin("interactive", 1, 2.0)
    put(turns, hosted, now=2.0)

    assert 2.0 + 2.0 == turns.waits_until(hosted, pending.groups, 1.0)


def test_an_idle_models_own_time_is_unknown_ten_seconds_after_its_last_batch():
    """Also beside another model that is busy, and not while it has work that will tell."""
    turns, idle, busy = scheduler(2)
    learns(idle, fixed_s=60.0)

    def run_s(now):
        return turns.forecast(idle, "interactive", Demand(), now).run_s

    put(turns, busy)
    run(turns, busy, 1.0, 8.0)
    assert [60.0, 0.0] == [run_s(9.9), run_s(10.0)]
    group = idle.queue.pending.begin("bulk", 1, 10.0)
    assert 60.0 == run_s(10.0)
    idle.queue.pending.end(group, 10.0)
    idle.queue.reserved["bulk"] += 1.0
    assert 60.0 == run_s(10.0)
    idle.queue.reserved["bulk"] -= 1.0
    put(turns, idle, now=10.0)
    assert 60.0 == run_s(10.0)
    batch = turns.begin(idle, 10.0)
    assert 60.0 == run_s(20.0)
    turns.end(batch, 20.0)
    for call in batch.jobs:
        call.finish(JobResult("outcome"))
    assert [60.0, 0.0] == [run_s(29.9), run_s(30.0)]


def test_urgent_calls_beside_a_batch_of_bulk_calls_take_none_of_those_along():
    """Bulk calls have their batch already; else they fill up what is left."""
    turns, hosted = scheduler()
    for lane in ("interactive", "bulk"):
        put(turns, hosted, lane=lane)
    urgent = turns.begin(hosted, 0.0, urgent=True)
    assert ["interactive"] == [call.lane for call in urgent.jobs]
    put(turns, hosted)

    assert ["interactive", "bulk"] == [call.lane for call in turns.begin(hosted, 0.0).jobs]
