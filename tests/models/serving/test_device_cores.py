"""A device's cores: how many a batch has, and what runs beside it."""

from dataclasses import replace
from threading import Event

import pytest
import torch

from service.core.concurrency.cpu_threads import cpu_threads
from service.serving.batcher.device import compute_on_one_core, is_out_of_memory
from tests.support.devices import Words, device, learns, outcomes_of, put, until_idle
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


async def test_nobody_but_the_device_computes_on_more_than_one_core():
    """Helpers of other threads would keep the device's from spinning, which makes batches slow."""
    served, resident = device(Counting(), cores=3)
    with cpu_threads(1, compute_on_one_core)["bulk"] as decoder:
        async with served:
            assert [3] * 8 == await outcomes_of(put(served, resident, *range(8)))
            assert 1 == await decoder.run(torch.get_num_threads)
            assert 1 == torch.get_num_threads()


@pytest.mark.parametrize(("reentrant", "expected"), [(True, [1, 2] * 2), (False, [2] * 2)])
async def test_a_model_is_warmed_up_where_it_will_run_and_the_pace_is_that_of_all_cores(reentrant, expected):
    """The last run is the one that the first prediction comes from."""
    model, seen = Counting(reentrant=reentrant), []
    score = model.score
    model.score = lambda batch: [seen.append(torch.get_num_threads()), *score(batch)][1:]
    served, _ = device(model, cores=2)
    async with served:
        assert expected == seen


@pytest.mark.parametrize(
    ("cores", "calls", "fixed", "threads"),
    [(2, 3, 0.001, 1), (2, 4, 0.001, 2), (2, 3, 0.1, 2), (4, 3, 0.001, 1)],
)
async def test_a_small_short_batch_has_one_thread(cores, calls, fixed, threads):
    """It is as fast so, and waits for nothing; long ones have all."""
    served, resident = device(Counting(), cores=cores)
    async with served:
        learns(resident, fixed=fixed)
        assert [threads] * calls == await outcomes_of(put(served, resident, *range(calls)))


@pytest.mark.parametrize("cores", [2, 4])
async def test_urgent_calls_run_beside_batches_of_bulk_calls(cores):
    """They take turns with them on the cores; bulk calls that fill no batch wait."""
    model = Counting()
    served, resident = device(model, cores=cores)
    async with served:
        model.hold.clear()
        busy = put(served, resident, *["busy"] * 16)
        await until_idle()
        [bulk] = put(served, resident, "bulk")
        await until_idle()
        for word in ("urgent", "urgent again"):
            assert [1] == await outcomes_of(put(served, resident, word, lane="interactive"))
        assert not any(call.result.done() for call in busy)
        model.hold.set()
        await outcomes_of([*busy, bulk])


@pytest.mark.parametrize(("lane", "threads"), [("bulk", 3), ("interactive", 4)])
async def test_a_bulk_batch_leaves_a_core_while_interactive_calls_wait(lane, threads):
    """Here of another model; interactive batches have all cores."""
    served, first, second = device(Counting(), Counting(), cores=4)
    second.paused = True
    async with served:
        urgent = put(served, second, "urgent", lane="interactive")
        assert [threads] * 8 == await outcomes_of(put(served, first, *range(8), lane=lane))
        served.resume(second)
        await outcomes_of(urgent)


async def test_a_bulk_batch_leaves_a_core_while_an_interactive_batch_runs():
    """It began next to an earlier bulk batch, which has ended meanwhile."""
    model, ends = Counting(), {"first": Event(), "urgent": Event()}
    score = model.score

    def held(batch):
        for prepared in batch:
            if prepared.data in ends:
                ends[prepared.data].wait(HELD_S)
        return score(batch)

    served, resident = device(model, cores=4)
    async with served:
        model.score = held
        first = put(served, resident, *["first"] * 8)
        await until_idle()
        urgent = put(served, resident, "urgent", lane="interactive")
        after = put(served, resident, *range(8))
        await until_idle()
        ends["first"].set()
        assert [4] * 8 == await outcomes_of(first)
        assert [3] * 8 == await outcomes_of(after)
        ends["urgent"].set()
        assert [1] == await outcomes_of(urgent)


async def test_a_batch_that_hangs_is_noticed_although_urgent_calls_beside_it_are_answered():
    """Or bulk calls might never be answered again, and nobody would know."""
    now = 0.0
    model = Counting()
    served, resident = device(model, cores=2, clock=lambda: now)
    async with served:
        model.hold.clear()
        busy = put(served, resident, *["busy"] * 16)
        await until_idle()
        now = 100.0
        await outcomes_of(put(served, resident, "urgent", lane="interactive"))

        assert 100.0 == served.stalled_for()
        model.hold.set()
        await outcomes_of(busy)


async def test_nothing_is_learnt_of_the_pace_from_calls_that_take_turns_with_others():
    """They took longer than they would by themselves."""
    model = Counting()
    served, resident = device(model, cores=2)
    async with served:
        model.hold.clear()
        busy = put(served, resident, *["busy"] * 16)
        await until_idle()
        before = resident.queue.cost_model.run_s(1)
        await outcomes_of(put(served, resident, "urgent", lane="interactive"))

        assert before == resident.queue.cost_model.run_s(1)
        model.hold.set()
        await outcomes_of(busy)


async def test_a_model_that_is_not_reentrant_is_never_asked_twice_at_once():
    """Its batches have all cores each, however much waits."""
    served, resident = device(Counting(reentrant=False), cores=2)
    async with served:
        assert [2] * 24 == await outcomes_of(put(served, resident, *range(24)))


def test_an_error_of_torch_that_memory_ran_out_is_one():
    """A smaller batch may succeed."""
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(torch.AcceleratorError("an illegal access"))
