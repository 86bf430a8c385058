"""One queue in front of several devices, in simulated time."""

from heapq import heappop, heappush
from itertools import count
from math import inf

import pytest

from models.core.contract import Prepared
from service.serving.admission import Demand
from service.serving.batcher.batching import Queue
from service.serving.batcher.scheduler import Capacity, HostedModel, RunningBatch, Scheduler
from service.serving.job import Job
from tests.support.devices import begins

FIXED_S, PER_CALL_S = 0.02, 0.01


def model_on(name, devices, *, max_items=8, **limits):
    limits = {"max_items": max_items, "max_cost": 100_000, "max_waiting": 10**9, **limits}
    hosted = HostedModel(name, None, Queue(**limits), copies=dict.fromkeys(devices))
    for calls in (1, max_items) * 50:
        hosted.queue.finished(calls, FIXED_S + PER_CALL_S * calls)
    return hosted


def names(number):
    return [f"cuda:{n}" for n in range(number)]


def put(turns, hosted, calls, lane="bulk", now=0.0):
    queued = [Job(Prepared(1, None), lane, now) for _ in range(calls)]
    for call in queued:
        turns.put(hosted, call)
    return queued


def simulate(turns, devices, until=float("inf")):
    """Run what waits on each device as it becomes free; yields the batches with their ends."""
    order = count()
    free = [(0.0, next(order), device) for device in devices]
    running = {}
    while free:
        now, _, device = heappop(free)
        if now >= until:
            return
        if batch := running.pop(device, None):
            turns.end(batch, now)
        batch = begins(turns, now, device)
        if isinstance(batch, RunningBatch):
            running[device] = batch
            end = now + FIXED_S + PER_CALL_S * len(batch.jobs)
            yield batch, end
            heappush(free, (end, next(order), device))


def makespan(devices):
    hosted = model_on("m", names(devices))
    turns = Scheduler([hosted], 0.0)
    put(turns, hosted, 8 * 400)
    return max(end for _, end in simulate(turns, names(devices)))


def test_the_end_of_what_runs_is_that_of_the_longest_batch():
    """In seconds from now; 0 if nothing runs, or if it should have ended already."""
    hosted = model_on("m", names(2))
    turns = Scheduler([hosted], 0.0)
    assert 0.0 == turns.ends_in_s(5.0)
    put(turns, hosted, 8 + 1)
    for device in names(2):
        turns.begin(hosted, 0.0, device)

    assert pytest.approx(FIXED_S + 8 * PER_CALL_S - 0.06) == turns.ends_in_s(0.06)
    assert 0.0 == turns.ends_in_s(7.0)


def test_a_running_batch_counts_as_if_it_had_ended_as_predicted():
    """In seconds over weight: a long interactive batch costs its model less than a short bulk one."""
    first, second = (model_on(name, ["cuda:0"]) for name in "ab")
    turns = Scheduler([first, second], 0.0, {"cuda:0": Capacity(3, 3)})
    for hosted, calls, lane in ((first, 8, "interactive"), (second, 1, "bulk")):
        put(turns, hosted, calls, lane)
        turns.begin(hosted, 0.0, "cuda:0")
        put(turns, hosted, 1, lane)

    assert first is turns.next(0.0, "cuda:0", 0).hosted


def test_a_model_that_lost_its_last_device_still_has_a_predicted_wait():
    """A request that arrives before the model is taken out gets the reason then, not an error of the sum."""
    hosted = model_on("m", names(1))
    turns = Scheduler([hosted], 0.0)
    hosted.copies.clear()

    assert 0.0 == turns.forecast(hosted, "bulk", Demand(), 1.0).wait_s


@pytest.mark.parametrize(("devices", "times"), [(2, 1.95), (8, 7.5)])
def test_devices_multiply_the_throughput_of_a_queue(devices, times):
    """The next batch goes to the first free device, so all are busy until nothing waits."""
    assert makespan(1) / makespan(devices) >= times


@pytest.mark.parametrize("devices", [1, 4])
def test_lanes_share_several_devices_as_they_share_one(devices):
    """Nine tokens of interactive calls to one of bulk calls, while both wait."""
    hosted = model_on("m", names(devices), max_items=10)
    turns = Scheduler([hosted], 0.0)
    put(turns, hosted, 9_000, "interactive")
    put(turns, hosted, 9_000, "bulk")
    lanes = [call.lane for batch, _ in simulate(turns, names(devices), until=4.0) for call in batch.jobs]

    assert 0.1 == pytest.approx(lanes.count("bulk") / len(lanes), abs=0.03)


@pytest.mark.parametrize("devices", [1, 4])
def test_models_share_several_devices_as_they_share_one(devices):
    """By the seconds of their batches, also while all devices become free at once."""
    hosted = [model_on(name, names(devices)) for name in ("a", "b")]
    turns = Scheduler(hosted, 0.0)
    for each in hosted:
        put(turns, each, 9_000)
    ran = [batch.hosted.name for batch, _ in simulate(turns, names(devices), until=4.0)]

    assert devices == 1 or {"a", "b"} == set(ran[:2])
    assert abs(ran.count("a") - ran.count("b")) <= 1


def test_forecasts_count_every_device_of_a_model():
    """Four devices do the work of a lane in a quarter of the time; a request is a quarter as large."""
    one, four = (model_on("m", names(number), max_items=1) for number in (1, 4))
    waits, extents, drains = [], [], []
    for hosted in (one, four):
        turns = Scheduler([hosted], 0.0)
        put(turns, hosted, 40)
        waits.append(turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s)
        extents.append(turns.estimate(hosted, Demand(calls=40)).batches)
        drains.append(turns.forecast(hosted, "bulk", Demand(calls=4), 0.0).drain_s)

    assert 4 == pytest.approx(waits[0] / waits[1])
    assert 4 == pytest.approx(extents[0] / extents[1])
    assert 4 == pytest.approx(drains[0] / drains[1])


def test_forecasts_count_the_slots_of_each_device():
    """A CPU of three cores and a GPU do the work of a lane in a quarter of the time of the GPU."""
    devices, capacities = ["cuda:0", "cpu"], {"cpu": Capacity(3, 3)}
    gpu, both = (model_on("m", devices[:number], max_items=1) for number in (1, 2))
    waits, extents = [], []
    for hosted in (gpu, both):
        turns = Scheduler([hosted], 0.0, capacities)
        put(turns, hosted, 40)
        waits.append(turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s)
        extents.append(turns.estimate(hosted, Demand(calls=40)).batches)

    assert 4 == pytest.approx(waits[0] / waits[1])
    assert 4 == pytest.approx(extents[0] / extents[1])


def test_work_of_a_model_on_a_cpu_and_a_gpu_is_divided_by_their_slots():
    """Three of four batches run on a CPU of three cores; a model on the GPU alone waits for the fourth."""
    alone, other = model_on("alone", ["cuda:0"]), model_on("other", ["cuda:0", "cpu"], max_items=1)
    turns = Scheduler([alone, other], 0.0, {"cpu": Capacity(3, 3)})
    put(turns, other, 40)

    run_s = FIXED_S + PER_CALL_S
    assert 10 * run_s == pytest.approx(turns.forecast(alone, "bulk", Demand(), 0.0).wait_s, rel=1e-3)


def test_a_device_that_is_out_counts_no_more():
    """Its copies are gone, so no batch begins there, and forecasts are those of the others."""
    hosted = model_on("m", names(2), max_items=1)
    turns = Scheduler([hosted], 0.0)
    put(turns, hosted, 10)
    before = turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s
    del hosted.copies["cuda:1"]

    assert 2 == pytest.approx(turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s / before)
    assert inf == begins(turns, 1.0, "cuda:1")
    assert begins(turns, 1.0, "cuda:0").hosted is hosted


def test_a_wait_ends_when_the_first_device_is_free():
    """A device without a batch takes the next call at once."""
    hosted = model_on("m", names(2), max_items=1)
    turns = Scheduler([hosted], 0.0)
    put(turns, hosted, 2)
    turns.begin(hosted, 0.0, "cuda:0")
    run_s = FIXED_S + PER_CALL_S
    assert run_s / 2 == pytest.approx(turns.forecast(hosted, "bulk", Demand(), 0.0).wait_s, rel=1e-3)
    turns.begin(hosted, 0.01, "cuda:1")

    assert run_s - 0.01 == pytest.approx(turns.forecast(hosted, "bulk", Demand(), 0.01).wait_s, rel=1e-3)


def test_models_on_other_devices_delay_nobody():
    """One device in common counts by its share of the other model's devices."""
    first, second = model_on("a", names(1)), model_on("b", names(4))
    apart = model_on("c", ["cuda:9"])
    turns = Scheduler([first, second, apart], 0.0)
    put(turns, second, 400)
    put(turns, apart, 400)

    assert second.queue.estimate_s(400) / 4 == pytest.approx(
        turns.forecast(first, "bulk", Demand(), 0.0).wait_s, rel=0.01
    )
    assert begins(turns, 1.0, "cuda:0").hosted is second
    assert begins(turns, 1.0, "cuda:9").hosted is apart


def test_a_paused_model_begins_nothing_and_stalls_nothing():
    """Its calls wait, and another model's go on."""
    first, second = model_on("a", names(1)), model_on("b", names(1))
    turns = Scheduler([first, second], 0.0)
    put(turns, first, 1)
    first.paused = True
    assert inf == begins(turns, 1.0, "cuda:0")
    assert 0.0 == turns.stalled_s(100.0)
    put(turns, second, 1)
    assert begins(turns, 1.0, "cuda:0").hosted is second
