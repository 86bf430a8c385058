"""A pool of several devices: a device that fails for good, and a model that is paused."""

import asyncio
from dataclasses import replace

import pytest

from models.core.outcomes import Reward
from service.core.errors import ModelFault
from service.serving.admission import Demand
from service.serving.batcher.batching import Queue
from service.serving.batcher.device import Device
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from tests.support.devices import Words, device, outcomes_of, pool, put, until_idle, value_of
from tests.support.instruments import unread

pytestmark = pytest.mark.anyio

NAMES = ("cpu:0", "cpu:1", "cpu:2", "cpu:3")


def fails(model):
    """From now on every call raises, the example too."""
    model.fault = lambda call: RuntimeError("CUDA error: device-side assert triggered")


async def test_a_batch_runs_on_each_device_at_once():
    """While one is busy the next one takes what comes."""
    served, hosted, copies = pool(*NAMES)
    async with served:
        for copy in copies.values():
            copy.hold.clear()
        calls = put(served, hosted, *range(16))
        await until_idle()
        running = [call.running for call in calls]
        for copy in copies.values():
            copy.hold.set()
        assert [*range(16)] == await outcomes_of(calls)

    assert all(running)
    assert [1.0] * 4 == [value_of(served, "scoregate_device_batches_total", name) for name in NAMES]
    assert {4} == {len(copy.batches[-1]) for copy in copies.values()}


async def test_calls_of_a_device_that_fails_for_good_are_answered_by_the_others():
    """One of four raises under load: every call gets its own answer, and the pool goes on without it."""
    broken = []
    served, hosted, copies = pool(*NAMES, broken=broken)
    async with served:
        calls = put(served, hosted, *range(40))
        fails(copies["cpu:1"])
        calls += put(served, hosted, *range(40, 100), lane="interactive")
        assert [*range(100)] == await outcomes_of(calls)

        assert served.running
        assert not broken
        assert ["cpu:0", "cpu:2", "cpu:3"] == list(hosted.copies)
        assert (0.0, 1.0) == tuple(value_of(served, "scoregate_device_up", name) for name in NAMES[1:3])
        assert "device-side assert" in served.devices[1].fault
        assert 0.0 == served.stalled_for()


async def test_without_any_device_left_the_pool_ends_as_with_one():
    """A call that two devices had is not tried again; who waits is answered, and the process should end."""
    broken = []
    served, hosted, copies = pool("cpu:0", "cpu:1", broken=broken)
    async with served:
        for copy in copies.values():
            fails(copy)
        outcomes = await outcomes_of(put(served, hosted, *range(20)))

        assert all(isinstance(outcome, ModelFault) for outcome in outcomes)
        assert not served.running
    assert ["the model m0 fails on every call since this error"] == [each.split(":")[0] for each in broken]
    assert {*broken} == {outcome.detail for outcome in outcomes}


async def test_a_device_that_fails_for_good_is_logged_with_its_error(caplog):
    """By its name: an operator has to look at it, while the pool goes on."""
    served, hosted, copies = pool("cpu:0", "cpu:1")
    async with served:
        fails(copies["cpu:1"])
        await outcomes_of(put(served, hosted, *range(20)))

    [said] = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert ("device broken", "cpu:1") == (said.getMessage(), said.device)
    assert "device-side assert" in str(said.exc_info[1])


async def test_a_call_that_breaks_two_devices_is_not_given_to_a_third():
    """Or one poisonous call would take out all of them."""
    served, hosted, copies = pool(*NAMES)

    def poisoned(copy):
        def fault(call):
            if call == "poison":
                fails(copy)
            return RuntimeError("assert") if call == "poison" else None

        return fault

    async with served:
        for copy in copies.values():
            copy.fault = poisoned(copy)
        [call] = put(served, hosted, "poison")
        assert isinstance((await call.result).outcome, ModelFault)
        assert ["fine"] == await outcomes_of(put(served, hosted, "fine"))
        assert 2 == len(hosted.copies)


async def test_a_call_that_left_meanwhile_is_not_queued_again():
    """And one that returns keeps its place by arrival."""
    served, hosted, _ = pool("cpu:0", "cpu:1")
    queue = hosted.queue
    first, gone, later = put(served, hosted, "first", "gone", "later")
    queue.take(0.0)
    gone.result.cancel()
    queue.put(later)
    for call in (first, gone):
        queue.put_back(call)

    assert [first, later] == queue.take(0.0)


async def test_a_paused_model_has_no_running_batch_and_begins_none_until_it_resumes():
    """What waits meanwhile is answered afterwards, by the copies that are there then."""
    served, hosted, copies = pool("cpu:0", "cpu:1")
    async with served:
        copies["cpu:0"].hold.clear()
        [busy] = put(served, hosted, "busy")
        await until_idle()
        pausing = asyncio.create_task(served.pause(hosted))
        await until_idle()
        waiting = put(served, hosted, "waiting")
        assert not pausing.done()
        copies["cpu:0"].hold.set()
        await pausing
        assert busy.result.done()
        await until_idle()
        assert not waiting[0].running

        hosted.copies = {"cpu:1": Words()}
        served.resume(hosted)
        assert ["waiting"] == await outcomes_of(waiting)
        assert ["waiting"] == hosted.copies["cpu:1"].calls


async def test_a_copy_with_other_numbers_than_the_first_ends_the_start():
    """Each copy is warmed up on its device, and all give the example one answer."""
    served, hosted, _ = pool("cpu:0", "cpu:1")
    answers = iter([Reward((0.0,)), Reward((9.0,))] * 4)
    for copy in hosted.copies.values():
        copy.answer = lambda call: next(answers)
    with pytest.raises(ModelFault, match="different numbers"):
        async with served:
            pass


@pytest.mark.parametrize(
    ("dtype", "later", "fits"),
    [("float32", 0.5, True), ("float32", 0.51, False), ("bfloat16", 0.51, True), ("bfloat16", 0.6, False)],
)
async def test_a_model_that_comes_back_has_the_numbers_of_its_first_start(dtype, later, fits):
    """Equal ones in float32, and but for rounding otherwise; or its scores could not be compared."""
    served, hosted, copies = pool("cpu:0")
    model = copies["cpu:0"]
    model.info = replace(model.info, dtype=dtype)
    model.answer = lambda call: Reward((0.5,))
    async with served:
        model.answer = lambda call: Reward((later,))
        if fits:
            await served.warm(hosted)
        else:
            with pytest.raises(ModelFault, match="m0: the test call has other numbers than at the first"):
                await served.warm(hosted)


def test_a_device_without_a_batch_is_not_stalled():
    """One with a batch is, since it began."""
    device = Device("cuda:0")
    assert 0.0 == device.stalled_for(100.0)
    device.slots[0].since = 40.0
    assert 60.0 == device.stalled_for(100.0)


async def test_forecasts_count_the_slots_and_the_cores_of_a_device():
    """A batch that leaves one of 64 cores leaves one of eight slots."""
    served, large, small = device(Words(), Words(), large=(True, False), cores=64)
    for hosted in (large, small):
        hosted.queue.finished(cost=1, seconds=1.0)
    for threads, wait_s in ((63, 0.0), (64, 1.0)):
        put(served, large, "long", lane="interactive")
        batch = served.scheduler.begin(large, served.clock(), threads=threads)
        forecast = served.scheduler.forecast(small, "interactive", Demand(), batch.began)
        assert wait_s == forecast.wait_s
        served.scheduler.end(batch, batch.began)


def test_forecasts_of_a_device_count_its_own_cores():
    """A GPU runs one batch, whatever the cores of the CPU of its pool."""
    devices, hosted_models = [Device("cpu", 8), Device("cuda:0")], []
    for on in (["cuda:0"], ["cuda:0", "cpu"]):
        queue = Queue(max_items=1, max_cost=1000, max_waiting=10_000)
        queue.finished(cost=1, seconds=1.0)
        hosted_models.append(HostedModel(f"m{len(on)}", Words(), queue, copies=dict.fromkeys(on, Words())))
    served, (alone, both) = (
        Pool(hosted_models, unread("m1", "m2"), devices=devices, clock=lambda: 0.0),
        hosted_models,
    )
    put(served, alone, "runs", "waits")
    served.scheduler.begin(alone, 0.0, "cuda:0")

    def wait_s(hosted):
        return served.scheduler.forecast(hosted, "bulk", Demand(), 0.0).wait_s

    assert 2.0 == wait_s(alone)
    assert 1 / 9 == pytest.approx(wait_s(both)), "it begins on the CPU, and one of nine batches waits"
