"""A device's cores: how many a batch has, and what runs beside it."""

from contextlib import AsyncExitStack
from dataclasses import replace
from threading import Barrier

import pytest
import torch

from service.core.concurrency.cpu_threads import cpu_threads
from service.serving.batcher.cost_model import CostModel
from service.serving.batcher.device import compute_on_one_core, is_out_of_memory
from tests.support.devices import Words, device, learns, outcomes_of, put, until_idle
from tests.support.fakes import HELD_S

pytestmark = pytest.mark.anyio


class Counting(Words):
    """
    Answers with the number of cores that it computes with.

    Attributes:
        together: batches that wait for each other, where it is not None; a call "busy" waits for `hold`.
    """

    def __init__(self, *, reentrant=True):
        super().__init__()
        self.info = replace(self.info, reentrant=reentrant)
        self.together = None

    def score(self, batch):
        if self.together:
            self.together.wait(HELD_S)
        if "busy" in [prepared.data for prepared in batch]:
            self.hold.wait(HELD_S)
        return [torch.get_num_threads() for _ in batch]


def decodes(resident, *, seconds):
    """A call of *resident* was prepared in so many."""
    for _ in range(50):
        group = resident.queue.pending.begin("bulk", 1, 0.0)
        resident.queue.pending.end(group, seconds)


async def test_nobody_but_the_device_computes_on_more_than_one_core():
    """Helpers of other threads would keep the device's from spinning, which makes batches slow."""
    served, resident = device(Counting(), cores=3)
    with cpu_threads(1, compute_on_one_core)["bulk"] as decoder:
        async with served:
            assert [3] == await outcomes_of(put(served, resident, "how many"))
            assert 1 == await decoder.run(torch.get_num_threads)
            assert 1 == torch.get_num_threads()


@pytest.mark.parametrize(("reentrant", "expected"), [(True, [1, 1, 2] * 2), (False, [2] * 2)])
async def test_a_model_is_warmed_up_where_it_will_run_and_the_pace_is_that_of_all_cores(reentrant, expected):
    """The last run is the one that the first prediction comes from."""
    model, seen = Counting(reentrant=reentrant), []
    score = model.score
    model.score = lambda batch: [seen.append(torch.get_num_threads()), *score(batch)][1:]
    served, _ = device(model, cores=2)
    async with served:
        assert expected == seen


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize(
    ("seconds", "groups", "cores"), [(11, 1, 5), (9, 1, 6), (11, 3, 3), (11, 4, 3), (1, 3, 6)]
)
async def test_a_batch_leaves_cores_where_decoding_takes_half_of_its_time(reentrant, seconds, groups, cores):
    """One for each group that is decoded, at most half; with less to decode they would be idle."""
    served, resident = device(Counting(reentrant=reentrant), cores=6)
    async with served, AsyncExitStack() as stack:
        learns(resident, fixed=20.0)
        decodes(resident, seconds=seconds)
        for _ in range(groups):
            stack.enter_context(served.expecting(resident, "bulk", 1))

        assert [cores] * 8 == await outcomes_of(put(served, resident, *range(8)))


async def test_decoding_for_just_half_of_a_batchs_time_leaves_it_all_cores():
    """Here a call takes 10 s to decode, and eight of them 20 s to score."""
    served, resident = device(Counting(), cores=4)
    async with served:
        resident.queue.cost_model = CostModel()
        resident.queue.finished(cost=8, seconds=20.0)
        decodes(resident, seconds=10)
        with served.expecting(resident, "bulk", 1):
            assert [4] * 8 == await outcomes_of(put(served, resident, *range(8)))


async def test_two_full_batches_run_at_once_with_half_of_the_cores_each():
    """What is left is run by all of them."""
    model = Counting()
    served, resident = device(model, cores=2)
    async with served:
        model.together = Barrier(2)
        assert [1] * 16 == await outcomes_of(put(served, resident, *range(16)))
        model.together = None
        assert [2] * 7 == await outcomes_of(put(served, resident, *range(7)))


@pytest.mark.parametrize(
    ("cores", "calls", "fixed", "threads"),
    [(2, 3, 0.001, 1), (2, 4, 0.001, 2), (2, 3, 0.1, 2), (4, 3, 0.001, 4)],
)
async def test_a_small_short_batch_has_one_of_two_threads(cores, calls, fixed, threads):
    """It is as fast so, and waits for nothing; more cores and long batches were not measured."""
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


async def test_batches_at_once_are_charged_for_their_share_of_the_device():
    """Two of ten seconds each, with half of the cores: ten seconds of the device."""
    now = 0.0
    model = Counting()
    served, resident = device(model, cores=2, clock=lambda: now)
    async with served:
        model.hold.clear()
        busy = put(served, resident, *["busy"] * 16)
        await until_idle()
        now = 10.0
        model.hold.set()
        await outcomes_of(busy)

    assert {10.0} == {(await call.result).ran_s for call in busy}
    assert pytest.approx(10.0) == resident.charged


async def test_nothing_begins_beside_a_batch_that_leaves_cores_to_decoding():
    """Only two cores are divided; the next full batch waits for all that this one could have had."""
    model = Counting()
    served, resident = device(model, cores=4)
    async with served:
        learns(resident, fixed=20.0)
        decodes(resident, seconds=11)
        with served.expecting(resident, "bulk", 1):
            model.hold.clear()
            calls = put(served, resident, *["busy"] * 16)
            await until_idle()
            running = [call.running for call in calls]
            model.hold.set()
            await outcomes_of(calls)

    assert [True] * 8 + [False] * 8 == running


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
