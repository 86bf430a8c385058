"""The last step of a call, in which all backends are alike: check, cost model, counters, callers, cache."""

import math
from functools import partial

import pytest

from models.core.contract import ModelError, Prepared
from models.core.outcomes import Embedding, Reward, Text
from service.core.errors import CallRefused, DeadlineExceeded, ModelFault
from service.observability.instruments import Instruments
from service.serving.batcher.batching import Queue, answer, checked
from service.serving.cache import OutcomeCache
from service.serving.handle import keep
from service.serving.job import Job, JobResult

COST = 10


class Observed(Queue):
    """A queue that keeps what its cost model is given."""

    def __init__(self):
        super().__init__(max_items=8, max_cost=1000, max_waiting=1000)
        self.seen = []

    def finished(self, cost, seconds, gap_s=0.0):
        self.seen.append((cost, seconds, gap_s))


def answered(*results, jobs=None, queue=None, instruments=None, gap_s=0.0):
    """The results of jobs that were answered with *results*."""
    jobs = jobs or [Job(Prepared(COST, number), "bulk") for number in range(len(results))]
    answer("m", queue or Observed(), jobs, results, instruments or Instruments(["m"]), gap_s)
    return [job.result.result() for job in jobs]


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_result_with_a_number_that_is_not_finite_is_a_fault_of_the_model(broken):
    """Its caller gets no number; times and trace stay, and so do the results beside it."""
    sound, bad = Reward((1.0, 2.0)), Reward((1.0, broken))
    first, second = answered(JobResult(sound, 1.0, 2.0, "span"), JobResult(bad, 1.0, 2.0, "span"))

    assert JobResult(sound, 1.0, 2.0, "span") == first
    assert (ModelFault, "the model m returned a number that is not finite") == (
        type(second.outcome),
        second.outcome.detail,
    )
    assert (1.0, 2.0, "span") == (second.waited_s, second.ran_s, second.batch_span)


def test_an_error_in_place_of_a_result_is_a_fault_and_an_error_of_the_service_stays():
    """A refusal was made one where the call was prepared or sent."""
    fault, refused, late = checked("m", ModelError("no numbers")), CallRefused("long"), DeadlineExceeded()

    assert (ModelFault, "no numbers") == (type(fault), fault.detail)
    assert [refused, late] == [checked("m", refused), checked("m", late)]
    assert "text" == checked("m", Text("text")).text


def test_the_cost_model_learns_from_each_batch_in_which_a_call_succeeded():
    """All of its calls ran in its seconds, which tell batches apart; the gap was before the first batch."""
    good, bad, queue = Reward((1.0,)), Reward((math.nan,)), Observed()
    results = [
        *(JobResult(good, 0.0, 2.0), JobResult(good, 0.0, 2.0), JobResult(bad, 0.0, 2.0)),
        *(JobResult(good, 0.0, 3.0), JobResult(ModelFault("it failed"), 0.0, 4.0)),
    ]
    answered(*results, queue=queue, gap_s=0.5)

    assert [(3 * COST, 2.0, 0.5), (COST, 3.0, 0.0)] == queue.seen


def test_calls_that_fail_in_batches_change_no_predicted_time():
    """Batches of eight calls take a second, however few of the calls succeed."""
    good, bad = JobResult(Reward((1.0,)), 0.0, 1.0), JobResult(ModelFault("it failed"), 0.0, 1.0)

    def predicted_s(*results):
        queue = Queue(max_items=8, max_cost=1000, max_waiting=1000)
        for _ in range(20):
            answered(*results, queue=queue)
        return queue.estimate_s(8 * COST)

    assert pytest.approx((1.0, 1.0)) == (predicted_s(*[good] * 8), predicted_s(good, *[bad] * 7))


def test_each_call_is_counted_once_by_its_lane_with_its_wait():
    """As cancelled if its callers have gone, whatever the model gave."""
    instruments, good = Instruments(["m"]), Reward((1.0,))
    jobs = [Job(Prepared(COST, number), lane) for number, lane in enumerate(["bulk", "interactive", "bulk"])]
    for job in jobs:
        job.begin(0.0)
    jobs[2].cancel()
    results = [JobResult(good, 1.0), JobResult(Reward((math.inf,)), 2.0), JobResult(good, 4.0)]
    answer("m", Observed(), jobs, results, instruments)

    def value(name, **labels):
        return instruments.registry.get_sample_value(f"scoregate_{name}", {"model": "m", **labels})

    counted = {
        (lane, result): value("calls_total", lane=lane, result=result)
        for lane in ("bulk", "interactive")
        for result in ("ok", "error", "cancelled")
    }
    assert {("bulk", "ok"): 1, ("bulk", "cancelled"): 1, ("interactive", "error"): 1} == {
        key: count for key, count in counted.items() if count
    }
    assert (5.0, 2.0) == tuple(value("queue_wait_seconds_sum", lane=lane) for lane in ("bulk", "interactive"))


def test_the_cache_gets_each_result_that_was_accepted():
    """Neither an error nor a number that is not finite is stored, nor what came after the callers left."""
    vector, cache = Embedding([1.0]), OutcomeCache(2**20)
    outcomes = [vector, Reward((math.nan,)), ModelFault("it failed"), Reward((2.0,))]
    jobs = [Job(Prepared(COST, number), "bulk") for number in range(len(outcomes))]
    for number, job in enumerate(jobs):
        job.result.add_done_callback(partial(keep, cache, bytes([number])))
    jobs[3].cancel()
    answer("m", Observed(), jobs, [*map(JobResult, outcomes)], Instruments(["m"]))

    assert [vector, None, None, None] == [cache.get(bytes([number])) for number in range(len(outcomes))]
