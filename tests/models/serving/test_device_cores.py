"""A CPU's cores: how many a batch has, and what runs beside it."""

import asyncio
from dataclasses import replace
from time import sleep

import pytest
import torch

from service.core.concurrency.cpu_threads import cpu_threads
from service.serving.batcher.device import (
    LARGE_MODEL_S,
    MAX_BATCHES_PER_CPU,
    compute_on_one_core,
    is_out_of_memory,
)
from tests.support.clocks import Clock
from tests.support.devices import Words, device, outcomes_of, put, submitted, until_idle
from tests.support.fakes import HELD_S
from tests.support.handles import until

pytestmark = pytest.mark.anyio


class Counting(Words):
    """Answers with the number of cores that it computes with; a call "busy" waits for `hold`."""

    def __init__(self, *, reentrant=True):
        super().__init__()
        self.info = replace(self.info, reentrant=reentrant)

    def score(self, batch):
        if "busy" in [prepared.data for prepared in batch]:
            self.hold.wait(HELD_S)
        return [torch.get_num_threads() for _ in batch]


def large_device(cores, **options):
    """A device whose model takes longer than that for its example, and the model's hosted."""
    clock = options.pop("clock", None) or Clock(step=2 * LARGE_MODEL_S)
    return device(Counting(), cores=cores, clock=clock, **options)


async def busy(served, hosted, calls, lane="bulk"):
    """Jobs that run until the model's `hold` is set."""
    hosted.model.hold.clear()
    jobs = put(served, hosted, *["busy"] * calls, lane=lane)
    await until_idle()
    return jobs


async def test_nobody_but_the_device_computes_on_more_than_one_core():
    """Helpers of other threads would keep the device's from spinning, which makes batches slow."""
    served, hosted = large_device(3)
    with cpu_threads(1, compute_on_one_core)["bulk"] as decoder:
        async with served:
            assert [3] * 8 == await outcomes_of(put(served, hosted, *range(8)))
            assert 1 == await decoder.run(torch.get_num_threads)
            assert 1 == torch.get_num_threads()


@pytest.mark.parametrize(("made", "expected"), [(large_device, [1, 1, 2, 2]), (device, [1] * 6)])
async def test_a_model_is_warmed_up_with_the_threads_that_its_batches_will_have(made, expected):
    """A large one on the first slot, with all cores; a small one on each, with one thread."""
    model, seen = Counting(), []
    score = Counting.score
    served, hosted = made(cores=2) if made is large_device else made(model, cores=2)
    hosted.model.score = lambda batch: [seen.append(torch.get_num_threads()), *score(model, batch)][1:]
    async with served:
        assert expected == seen
        assert (made is large_device) is hosted.large


async def test_a_model_that_is_large_at_first_stays_so():
    """Its numbers are compared with those of the first start, to the last bit."""
    served, hosted = large_device(2, clock=(clock := Clock(step=2 * LARGE_MODEL_S)))
    async with served:
        clock.step = 0.0
        await served.warm(hosted)
        assert hosted.large


async def test_the_cores_share_what_waits_equally_with_one_thread_each():
    """The first batch does not take everything that waits."""
    served, hosted = device(Counting(), cores=4)
    async with served:
        assert [1] * 8 == await outcomes_of(put(served, hosted, *range(8)))
        jobs = await busy(served, hosted, 7)
        assert [2, 2, 2, 1] == [len(batch.jobs) for batch in served.scheduler.running]
        hosted.model.hold.set()
        assert [1] * 7 == await outcomes_of(jobs)


async def test_a_cpu_of_many_cores_runs_eight_batches_at_once():
    """Each further thread would be another one to wake for each call."""
    served, hosted = device(Counting(), cores=64)
    async with served:
        jobs = await busy(served, hosted, 16)
        assert MAX_BATCHES_PER_CPU == len(served.scheduler.running)
        hosted.model.hold.set()
        assert [1] * 16 == await outcomes_of(jobs)


@pytest.mark.parametrize("cores", [2, 4, 16])
async def test_bulk_calls_leave_a_core_for_a_second_after_an_interactive_call(cores):
    """Interactive calls compute at once so, and take no bulk calls along."""
    now, slots = 0.0, min(cores, MAX_BATCHES_PER_CPU)
    served, hosted = device(Counting(), cores=cores, clock=lambda: now)
    async with served:
        assert [1] == await outcomes_of(put(served, hosted, "first", lane="interactive"))
        jobs = await busy(served, hosted, 8 * slots)
        assert slots - 1 == len(served.scheduler.running)
        for word in ("urgent", "urgent again"):
            assert [1] == await outcomes_of(put(served, hosted, word, lane="interactive"))
        assert slots - 1 == len(served.scheduler.running)
        now = 1.1
        jobs += put(served, hosted, "more")
        await until_idle()
        assert slots == len(served.scheduler.running)
        hosted.model.hold.set()
        await outcomes_of(jobs)


async def test_the_core_that_bulk_calls_left_is_theirs_a_second_later():
    """Although no call arrives and no batch ends."""
    now = 0.0
    served, hosted = device(Counting(), cores=2, clock=lambda: now)
    async with served:
        await outcomes_of(put(served, hosted, "first", lane="interactive"))
        now = 0.999
        jobs = await busy(served, hosted, 16)
        assert 1 == len(served.scheduler.running)
        now = 1.1
        await until(lambda: 2 == len(served.scheduler.running))
        hosted.model.hold.set()
        await outcomes_of(jobs)


async def test_a_bulk_call_that_becomes_interactive_has_the_free_core_at_once():
    """An interactive request has the same call."""
    served, hosted = device(Counting(), cores=2, clock=lambda: 0.0)
    async with served:
        await outcomes_of(put(served, hosted, "first", lane="interactive"))
        jobs = await busy(served, hosted, 8)
        [bulk] = put(served, hosted, "bulk")
        await until_idle()
        bulk.promote()
        assert [1] == await outcomes_of([bulk])
        hosted.model.hold.set()
        await outcomes_of(jobs)


async def test_interactive_calls_are_shared_by_the_cores_although_bulk_calls_wait_too():
    """Each batch may fill up with some of those."""
    served, hosted = device(Counting(), cores=2)
    async with served:
        hosted.model.hold.clear()
        jobs = [submitted(served, hosted, "busy", lane) for lane in ["bulk"] * 24 + ["interactive"] * 8]
        await until_idle()
        lanes = [[job.lane for job in batch.jobs] for batch in served.scheduler.running]
        assert [4, 4] == [each.count("interactive") for each in lanes]
        hosted.model.hold.set()
        await outcomes_of(jobs)


async def test_bulk_calls_of_one_model_have_their_share_while_interactive_ones_of_another_wait():
    """The cores are theirs by the weights of the lanes, as on any device."""
    served, first, second = device(Counting(), Counting(), cores=2, limits={"max_items": 1})
    score = Counting.score
    first.model.score = lambda batch: [sleep(0.002), *score(first.model, batch)][1:]
    async with served:
        urgent = put(served, first, *range(200), lane="interactive")
        [bulk] = put(served, second, "bulk")
        assert [1] == await outcomes_of([bulk])
        assert not urgent[-1].result.done()
        await outcomes_of(urgent)


@pytest.mark.parametrize(("lane", "threads"), [("bulk", 3), ("interactive", 4)])
async def test_a_large_bulk_batch_leaves_a_core_to_small_models(lane, threads):
    """Whose interactive calls could have to wait for seconds; interactive batches have all cores."""
    served, large, _ = device(Counting(), Counting(), large=(True, False), cores=4)
    async with served:
        assert [threads] * 8 == await outcomes_of(put(served, large, *range(8), lane=lane))


@pytest.mark.parametrize("lane", ["bulk", "interactive"])
async def test_a_large_model_without_small_ones_has_all_cores(lane):
    """Nothing else could compute with one that it leaves."""
    served, hosted = large_device(4)
    async with served:
        assert [4] * 8 == await outcomes_of(put(served, hosted, *range(8), lane=lane))


async def test_small_models_compute_while_a_large_one_waits_for_the_first_slot():
    """Whose thread alone has helpers; then it has the cores that are free."""
    served, small, large = device(Counting(), Counting(), large=(False, True), cores=4)
    async with served:
        jobs = await busy(served, small, 1)
        later = put(served, large, *range(4), lane="interactive")
        await until_idle()
        assert 1 == len(served.scheduler.running)
        small.charged = large.charged + 1.0
        assert [1] == await outcomes_of(put(served, small, "beside", lane="interactive"))
        assert not any(job.result.done() for job in later)
        small.model.hold.set()
        assert [4] * 4 == await outcomes_of(later)
        await outcomes_of(jobs)


async def test_a_model_that_loads_under_load_is_warmed_up_with_its_own_number_of_threads():
    """Its numbers are compared with those of the first start, to the last bit."""
    model, seen = Counting(), []
    score = Counting.score
    served, small, large = device(Counting(), model, large=(False, True), cores=4)
    async with served:
        model.score = lambda batch: [seen.append(torch.get_num_threads()), *score(model, batch)][1:]
        warming = asyncio.ensure_future(served.warm(large))
        await outcomes_of(put(served, small, *range(40)))
        await warming
        assert [4, 4] == seen


async def test_a_batch_that_hangs_is_noticed_although_calls_beside_it_are_answered():
    """Or its calls might never be answered, and nobody would know."""
    now = 0.0
    served, hosted = device(Counting(), cores=2, clock=lambda: now)
    async with served:
        jobs = await busy(served, hosted, 1)
        now = 100.0
        await outcomes_of(put(served, hosted, "urgent", lane="interactive"))

        assert 100.0 == served.stalled_for()
        hosted.model.hold.set()
        await outcomes_of(jobs)


async def test_a_model_that_is_not_reentrant_never_runs_twice_at_once():
    """Its batches have all cores each, however much waits."""
    served, hosted = device(Counting(reentrant=False), cores=2)
    async with served:
        assert [2] * 24 == await outcomes_of(put(served, hosted, *range(24)))
        jobs = await busy(served, hosted, 24)
        assert 1 == len(served.scheduler.running)
        hosted.model.hold.set()
        await outcomes_of(jobs)


def test_an_error_of_torch_that_memory_ran_out_is_one():
    """A smaller batch may succeed."""
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(torch.AcceleratorError("an illegal access"))
