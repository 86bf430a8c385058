"""A CPU's cores: how many a batch has, and what runs beside it."""

from dataclasses import replace
from itertools import count

import pytest
import torch

from service.core.concurrency.cpu_threads import cpu_threads
from service.serving.batcher.device import AT_ONCE, LARGE_S, compute_on_one_core, is_out_of_memory
from tests.support.devices import Words, device, outcomes_of, put, until_idle
from tests.support.fakes import HELD_S

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
    """A device whose model takes longer than that for its example, and the model's resident."""
    ticks = count(0.0, 2 * LARGE_S)
    return device(Counting(), cores=cores, clock=lambda: next(ticks), **options)


async def busy(served, resident, calls, lane="bulk"):
    """Jobs that run until the model's `hold` is set."""
    resident.model.hold.clear()
    jobs = put(served, resident, *["busy"] * calls, lane=lane)
    await until_idle()
    return jobs


async def test_nobody_but_the_device_computes_on_more_than_one_core():
    """Helpers of other threads would keep the device's from spinning, which makes batches slow."""
    served, resident = large_device(3)
    with cpu_threads(1, compute_on_one_core)["bulk"] as decoder:
        async with served:
            assert [3] * 8 == await outcomes_of(put(served, resident, *range(8)))
            assert 1 == await decoder.run(torch.get_num_threads)
            assert 1 == torch.get_num_threads()


@pytest.mark.parametrize(("made", "expected"), [(large_device, [1, 1, 2, 2]), (device, [1] * 6)])
async def test_a_model_is_warmed_up_with_the_threads_that_its_batches_will_have(made, expected):
    """A large one on the first slot, with all cores; a small one on each, with one thread."""
    model, seen = Counting(), []
    score = Counting.score
    served, resident = made(cores=2) if made is large_device else made(model, cores=2)
    resident.model.score = lambda batch: [seen.append(torch.get_num_threads()), *score(model, batch)][1:]
    async with served:
        assert expected == seen
        assert (made is large_device) is resident.large


async def test_a_model_that_is_large_at_first_stays_so():
    """Its numbers are compared with those of the first start, to the last bit."""
    served, resident = large_device(2)
    async with served:
        served.clock = lambda: 0.0
        await served.warm(resident)
        assert resident.large


async def test_the_cores_share_what_waits_equally_with_one_thread_each():
    """The first batch does not take everything that waits."""
    served, resident = device(Counting(), cores=4)
    async with served:
        assert [1] * 8 == await outcomes_of(put(served, resident, *range(8)))
        jobs = await busy(served, resident, 7)
        begun = [sum(batch.calls.__contains__(job) for job in jobs) for batch in served.scheduler.running]
        assert [2, 2, 2, 1] == begun
        resident.model.hold.set()
        assert [1] * 7 == await outcomes_of(jobs)


async def test_a_cpu_of_many_cores_runs_eight_batches_at_once():
    """Each further thread would be another one to wake for each call."""
    served, resident = device(Counting(), cores=64)
    async with served:
        jobs = await busy(served, resident, 16)
        assert AT_ONCE == len(served.scheduler.running)
        resident.model.hold.set()
        assert [1] * 16 == await outcomes_of(jobs)


@pytest.mark.parametrize("cores", [2, 4])
async def test_bulk_calls_leave_a_core_for_a_second_after_an_interactive_call(cores):
    """Interactive calls compute at once so, and take no bulk calls along."""
    now = 0.0
    served, resident = device(Counting(), cores=cores, clock=lambda: now)
    async with served:
        assert [1] == await outcomes_of(put(served, resident, "first", lane="interactive"))
        jobs = await busy(served, resident, 8 * cores)
        assert cores - 1 == len(served.scheduler.running)
        for word in ("urgent", "urgent again"):
            assert [1] == await outcomes_of(put(served, resident, word, lane="interactive"))
        assert cores - 1 == len(served.scheduler.running)
        now = 1.1
        jobs += put(served, resident, "more")
        await until_idle()
        assert cores == len(served.scheduler.running)
        resident.model.hold.set()
        await outcomes_of(jobs)


@pytest.mark.parametrize(("lane", "threads"), [("bulk", 3), ("interactive", 4)])
async def test_a_large_bulk_batch_leaves_a_core_to_interactive_calls(lane, threads):
    """Interactive batches have all cores."""
    served, resident = large_device(4)
    async with served:
        served.clock = lambda: 0.0
        await outcomes_of(put(served, resident, "first", lane="interactive"))
        assert [threads] * 8 == await outcomes_of(put(served, resident, *range(8), lane=lane))


async def test_a_large_model_has_the_cores_that_small_ones_leave():
    """It waits for the first slot, whose thread alone has helpers."""
    served, small, large = device(Counting(), Counting(), cores=4)
    async with served:
        large.large = True
        jobs = await busy(served, small, 1)
        later = put(served, large, *range(4))
        await until_idle()
        assert 1 == len(served.scheduler.running)
        small.model.hold.set()
        assert [4] * 4 == await outcomes_of(later)
        await outcomes_of(jobs)


async def test_a_batch_that_hangs_is_noticed_although_calls_beside_it_are_answered():
    """Or its calls might never be answered, and nobody would know."""
    now = 0.0
    served, resident = device(Counting(), cores=2, clock=lambda: now)
    async with served:
        jobs = await busy(served, resident, 1)
        now = 100.0
        await outcomes_of(put(served, resident, "urgent", lane="interactive"))

        assert 100.0 == served.stalled_for()
        resident.model.hold.set()
        await outcomes_of(jobs)


async def test_a_model_that_is_not_reentrant_never_runs_twice_at_once():
    """Its batches have all cores each, however much waits."""
    served, resident = device(Counting(reentrant=False), cores=2)
    async with served:
        assert [2] * 24 == await outcomes_of(put(served, resident, *range(24)))
        jobs = await busy(served, resident, 24)
        assert 1 == len(served.scheduler.running)
        resident.model.hold.set()
        await outcomes_of(jobs)


def test_an_error_of_torch_that_memory_ran_out_is_one():
    """A smaller batch may succeed."""
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(torch.AcceleratorError("an illegal access"))
