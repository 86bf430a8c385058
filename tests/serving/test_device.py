"""A device: batches in their turns, and that everyone gets exactly one answer."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from threading import Barrier

import pytest
import torch

from models.fake import chance
from service.concurrency.cpu_threads import cpu_threads
from service.errors import Draining
from service.serving.batcher.cores import compute_on_one_core
from tests.serving.devices import Words, device, holding, learns, outcomes_of, put, until_idle
from tests.support.fakes import HELD_S

pytestmark = pytest.mark.anyio


async def test_every_caller_gets_the_answer_to_his_own_call():
    """Same length, same order, also when one caller leaves in between."""
    served, resident = device(Words())
    async with served:
        calls = put(served, resident, *range(20))
        calls.pop(3).result.cancel()

        assert [n for n in range(20) if n != 3] == await outcomes_of(calls)


async def test_who_is_in_a_batch_is_decided_when_the_device_is_free():
    """What came while it was busy, most urgent first, is the next batch."""
    model = Words()
    served, resident = device(model, limits={"max_items": 2})
    async with served:
        busy = await holding(model, served, resident)
        bulk = put(served, resident, "b1", "b2")
        urgent = put(served, resident, "u1", lane="interactive")
        model.hold.set()
        await outcomes_of([busy, *bulk, *urgent])

    assert [["busy"], ["u1", "b1"], ["b2"]] == model.batches[2:]


async def test_models_take_turns_by_what_their_batches_took():
    """With a weight of 9, one model's interactive calls get nine batches to one of another's bulk calls."""
    now = 0.0

    class Second(Words):
        def score(self, batch):
            nonlocal now
            now += 1.0
            return super().score(batch)

    urgent, bulk = Second(), Second()
    served, first, second = device(urgent, bulk, limits={"max_items": 1}, clock=lambda: now)
    order = []
    urgent.answer = bulk.answer = lambda word: order.append(word) or word
    async with served:
        order.clear()
        calls = [
            *(call for n in range(40) for call in put(served, first, "urgent", lane="interactive")),
            *(call for n in range(40) for call in put(served, second, "bulk")),
        ]
        await outcomes_of(calls)

    assert 4 == order[:40].count("bulk")


async def test_a_call_dropped_as_the_device_looks_for_it_does_not_stop_the_event_loop():
    """It counts as waiting until its future's callbacks have run; the device lets them run, and goes on."""
    looks = iter(range(100))  # a loop that never lets go would use them up, and end there
    served, resident = device(Words(), clock=lambda: float(next(looks)))
    async with served:
        [gone] = put(served, resident, "gone")
        gone.result.cancel()
        await asyncio.sleep(0)
        [there] = put(served, resident, "there")

        assert ["there"] == await outcomes_of([there])
        assert served.running


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
@pytest.mark.parametrize(("seconds", "groups", "cores"), [(11, 1, 3), (11, 2, 2), (11, 3, 2), (1, 3, 4)])
async def test_a_batch_leaves_cores_where_decoding_takes_half_of_its_time(reentrant, seconds, groups, cores):
    """One for each group that is decoded, at most half; with less to decode they would be idle."""
    served, resident = device(Counting(reentrant=reentrant), cores=4)
    async with served, AsyncExitStack() as stack:
        learns(resident, fixed=20.0)
        decodes(resident, seconds=seconds)
        for _ in range(groups):
            stack.enter_context(served.expecting(resident, "bulk", 1))

        assert [cores] * 8 == await outcomes_of(put(served, resident, *range(8)))


async def test_two_full_batches_run_at_once_with_half_of_the_cores_each():
    """What is left is run by all of them."""
    model = Counting()
    served, resident = device(model, cores=2)
    async with served:
        model.together = Barrier(2)
        assert [1] * 16 == await outcomes_of(put(served, resident, *range(16)))
        model.together = None
        assert [2] * 7 == await outcomes_of(put(served, resident, *range(7)))


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


async def test_closing_answers_everyone_who_waits():
    """Nobody is left without an answer, and nobody new is taken."""
    model = Words()
    served, resident = device(model)
    async with served:
        busy = await holding(model, served, resident)
        calls = [busy, *put(served, resident, *range(20))]
        asyncio.get_running_loop().call_soon(model.hold.set)
    outcomes = await outcomes_of(calls)

    assert "busy" == outcomes[0]
    assert all(isinstance(outcome, Draining) for outcome in outcomes[1:])
    with pytest.raises(Draining):
        put(served, resident, 0)


async def test_the_wait_is_told_from_the_pace_of_what_is_before():
    """Waiting work at its measured rate, and what is left of the batch under way."""
    now = 0.0
    model = Words()
    served, resident = device(model, clock=lambda: now, limits={"max_items": 1})
    async with served:
        for _ in range(50):
            resident.queue.finished(cost=1, seconds=2.0)
        busy = await holding(model, served, resident)
        now = 0.5
        assert pytest.approx(1.5, rel=0.01) == served.wait_s("interactive")

        calls = put(served, resident, 1, 2, lane="interactive")
        assert pytest.approx(5.5, rel=0.01) == served.wait_s("interactive")

        calls += put(served, resident, 3)
        assert pytest.approx(1.5 + 4 * 10 / 9, rel=0.01) == served.wait_s("interactive")
        assert pytest.approx(7.5, rel=0.01) == served.wait_s("bulk")
        with served.expecting(resident, "bulk", 3):
            assert pytest.approx(13.5, rel=0.01) == served.wait_s("bulk")
        model.hold.set()
        await outcomes_of([busy, *calls])


async def test_a_device_that_stands_still_is_told_from_an_idle_one():
    """Stalled means work and no finished batch; idle for an hour is no stall."""
    now = 0.0
    model = Words()
    served, resident = device(model, clock=lambda: now)
    async with served:
        now = 3600.0
        assert 0.0 == served.stalled_for()
        busy = await holding(model, served, resident)
        now = 3700.0
        assert 100.0 == served.stalled_for()
        model.hold.set()
        await busy.result
        assert 0.0 == served.stalled_for()


def test_fakes_spread_their_scores():
    """The fake's numbers lie strictly between 0 and 1."""
    assert all(0 < chance(str(n)) < 1 for n in range(1000))
