"""A device: batches in their turns, and that everyone gets exactly one answer."""

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import torch

from models.base import Likelihood, Prepared
from service.errors import Draining, ModelFault
from service.serving.batching import Ticket
from service.serving.device import Device, Resident
from service.serving.queue import Queue
from service.telemetry import Instruments
from tests.fakes import FakeVqa, chance

pytestmark = pytest.mark.anyio


def device(*models, instruments=None, **options):
    """A device that serves *models*, and their residents; `limits` are the queues'."""
    limits = {"max_items": 8, "max_cost": 1000, "max_waiting": 10_000, **options.pop("limits", {})}
    residents = [Resident(f"m{n}", model, Queue(**limits)) for n, model in enumerate(models)]
    names = [resident.name for resident in residents]
    return Device(residents, instruments or Instruments(names), **options), *residents


class Words(FakeVqa):
    """Answers with the call itself."""

    def answer(self, call):
        return call


def put(served, resident, *words, lane="bulk"):
    return [served.submit(resident, Prepared(1, word), Ticket(lane)) for word in words]


def learns(resident, *, fixed):
    """Its batches take *fixed* seconds and hardly anything for a call."""
    for cost in (1, 2) * 50:
        resident.queue.finished(cost, seconds=fixed + 1e-6 * cost)


async def until_idle():
    """Whatever could run has run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def outcomes_of(entries):
    return [await entry.outcome for entry in entries]


async def holding(model, served, resident):
    """The device is busy with one call of *model*."""
    model.hold.clear()
    [busy] = put(served, resident, "busy")
    while not model.held:
        await asyncio.sleep(0.001)
    return busy


async def test_a_loop_that_ended_by_itself_is_not_alive():
    """Nobody would be served any more: stalled without end, and its callers are told."""
    served, resident = device(Words())
    async with served:
        resident.queue.take = lambda now: 1 / 0
        [entry] = put(served, resident, 0)
        await asyncio.wait([served._task])

        assert math.inf == served.stalled_for()
        with pytest.raises(ZeroDivisionError):
            served._task.result()
        served._task = None
        del resident.queue.take
        entry.outcome.cancel()


async def test_every_caller_gets_the_answer_to_his_own_call():
    """Same length, same order, also when one caller leaves in between."""
    served, resident = device(Words())
    async with served:
        entries = put(served, resident, *range(20))
        entries.pop(3).outcome.cancel()

        assert [n for n in range(20) if n != 3] == await outcomes_of(entries)


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
        entries = [
            *(entry for n in range(40) for entry in put(served, first, "urgent", lane="interactive")),
            *(entry for n in range(40) for entry in put(served, second, "bulk")),
        ]
        await outcomes_of(entries)

    assert 4 == order[:40].count("bulk")


async def test_an_idle_device_lingers_only_where_it_was_told_to():
    """With `linger_ms` the first call waits for company until its batch is full."""
    model = Words()
    served, resident = device(model, limits={"max_items": 3, "linger_s": 60.0})
    async with served:
        first = put(served, resident, 1)
        await asyncio.sleep(0)
        rest = put(served, resident, 2, 3)
        await outcomes_of(first + rest)

    assert [[1, 2, 3]] == model.batches[2:]


async def test_an_idle_device_waits_for_calls_that_are_being_prepared():
    """The images of one request are decoded in turn, and share a batch all the same."""
    model = Words()
    served, resident = device(model)
    async with served:
        learns(resident, fixed=60.0)
        with served.expecting(resident, "interactive", 2):
            entries = put(served, resident, 1, lane="interactive")
            await until_idle()
            assert [] == model.batches[2:]
        entries += put(served, resident, 2, 3, lane="interactive")
        await outcomes_of(entries)

    assert [[1, 2, 3]] == model.batches[2:]


async def test_it_waits_no_longer_than_a_batch_saved_is_worth():
    """However long they take: twice the fixed part, and it goes without them."""
    model = Words()
    served, resident = device(model)
    async with served:
        learns(resident, fixed=0.01)
        with served.expecting(resident, "interactive", 1):
            await outcomes_of(put(served, resident, 1, lane="interactive"))

    assert [[1]] == model.batches[2:]


@pytest.mark.parametrize(("calls", "batches"), [(3, [[1, 2]]), (10, [[1], [2]])])
async def test_it_waits_only_for_calls_that_are_likely_to_be_ready_by_then(calls, batches):
    """Calls were ready one a second lately: three more are worth twice the two of a batch, ten are not."""
    now = 0.0
    model = Words()
    served, resident = device(model, clock=lambda: now)
    async with served:
        learns(resident, fixed=2.0)
        with served.expecting(resident, "interactive", 10):
            now = 10.0
        with served.expecting(resident, "interactive", calls):
            entries = put(served, resident, 1, lane="interactive")
            await until_idle()
            if len(batches) == 2:
                await outcomes_of(entries)
        entries += put(served, resident, 2, lane="interactive")
        await outcomes_of(entries)

    assert batches == model.batches[2:]


async def test_it_waits_for_nobody_who_sets_out_later_and_for_nobody_less_urgent():
    """Or calls would wait for one another without end, and interactive ones for bulk."""
    model = Words()
    served, resident = device(model)
    async with served:
        learns(resident, fixed=60.0)
        with served.expecting(resident, "bulk", 1), ExitStack() as late:
            await outcomes_of(put(served, resident, "urgent", lane="interactive"))
            with served.expecting(resident, "interactive", 1):
                entries = put(served, resident, 1, lane="interactive")
                await until_idle()
                late.enter_context(served.expecting(resident, "interactive", 1))
            await outcomes_of(entries)

    assert [["urgent"], [1]] == model.batches[2:]


async def test_it_waits_for_no_one_while_another_model_has_work():
    """The device is there for all."""
    model, other = Words(), Words()
    served, resident, second = device(model, other)
    async with served:
        learns(resident, fixed=60.0)
        with served.expecting(resident, "interactive", 1):
            entries = put(served, resident, 1, lane="interactive")
            await until_idle()
            entries += put(served, second, 2, lane="interactive")
            await outcomes_of(entries)

    assert ([[1]], [[2]]) == (model.batches[2:], other.batches[2:])


async def test_a_call_dropped_as_the_device_looks_for_it_does_not_stop_the_event_loop():
    """It counts as waiting until its future's callbacks have run; the device lets them run, and goes on."""
    looks = iter(range(100))  # a loop that never lets go would use them up, and end there
    served, resident = device(Words(), clock=lambda: float(next(looks)))
    async with served:
        [gone] = put(served, resident, "gone")
        gone.outcome.cancel()
        await asyncio.sleep(0)
        [there] = put(served, resident, "there")

        assert "there" == await there.outcome
        assert served.running


async def test_nobody_but_the_device_computes_on_more_than_one_core():
    """Helpers of other threads would keep the device's from spinning, which makes batches slow."""
    model = Words()
    model.answer = lambda call: torch.get_num_threads()
    served, resident = device(model, cores=3)
    async with served:
        assert [3] == await outcomes_of(put(served, resident, "how many"))
        with ThreadPoolExecutor(1) as other:
            assert 1 == other.submit(torch.get_num_threads).result()
        assert 1 == torch.get_num_threads()


async def test_closing_answers_everyone_who_waits():
    """Nobody is left without an answer, and nobody new is taken."""
    model = Words()
    served, resident = device(model)
    async with served:
        busy = await holding(model, served, resident)
        entries = [busy, *put(served, resident, *range(20))]
        asyncio.get_running_loop().call_soon(model.hold.set)
    outcomes = await outcomes_of(entries)

    assert "busy" == outcomes[0]
    assert all(isinstance(outcome, Draining) for outcome in outcomes[1:])
    with pytest.raises(Draining):
        put(served, resident, 0)


async def test_an_outcome_too_few_is_a_fault_not_a_shift():
    """A model that loses a call fails the batch; no answer goes to the wrong caller."""
    model = Words()
    served, resident = device(model)
    async with served:
        whole = model.score
        model.score = lambda batch: whole(batch)[: len(batch) - (len(batch) > 1)]
        busy = await holding(model, served, resident)
        entries = put(served, resident, *range(3))
        model.hold.set()
        outcomes = await outcomes_of(entries)
        await busy.outcome

    assert all(isinstance(outcome, ModelFault) for outcome in outcomes)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
async def test_a_number_that_is_not_finite_is_a_fault_of_its_call(broken):
    """Its neighbours in the batch keep their answers."""
    model = FakeVqa()
    served, resident = device(model)
    sound = Likelihood((-0.1,), -0.1, -3.0)
    model.answer = lambda call: Likelihood((broken,), -0.1, -3.0) if call == "bad" else sound
    async with served:
        fine, bad = await outcomes_of(put(served, resident, "fine", "bad"))

    assert fine == sound
    assert isinstance(bad, ModelFault)


async def test_one_poisoned_call_fails_alone():
    """A failing batch is halved until the bad call stands alone."""
    model = Words()
    model.fault = lambda call: ValueError() if call == 5 else None
    served, resident = device(model)
    async with served:
        outcomes = await outcomes_of(put(served, resident, *range(8)))

        assert isinstance(outcomes.pop(5), ModelFault)
        assert [0, 1, 2, 3, 4, 6, 7] == outcomes
        assert served.running


async def test_a_batch_too_large_for_memory_is_split_and_smaller_ones_follow():
    """Everyone is answered; the next batches stay under what failed."""
    model = Words()
    whole = model.score

    def score(batch):
        if len(batch) > 4:
            raise torch.OutOfMemoryError
        return whole(batch)

    served, resident = device(model)
    async with served:
        model.score = score
        busy = await holding(model, served, resident)
        entries = put(served, resident, *range(16))
        model.hold.set()
        await busy.outcome

        assert list(range(16)) == await outcomes_of(entries)
    assert [1, 4, 4, 4, 4] == [len(batch) for batch in model.batches[2:]]


async def test_a_fault_that_sticks_fails_everyone_at_once_and_is_told():
    """When even the example fails, nothing will work again: no call is tried on and on."""
    model, told = Words(), []
    served, resident = device(model, on_broken=told.append)
    async with served:
        busy = await holding(model, served, resident)
        entries = put(served, resident, *range(20))
        model.fault = lambda call: RuntimeError("CUDA error: an illegal access\nmore")
        model.hold.set()
        outcomes = await outcomes_of([busy, *entries])

        assert all(isinstance(outcome, ModelFault) for outcome in outcomes)
        assert ["the model m0 fails on everything since RuntimeError: CUDA error: an illegal access"] == told
        assert not served.running
        assert math.inf == served.stalled_for()
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

        entries = put(served, resident, 1, 2, lane="interactive")
        assert pytest.approx(5.5, rel=0.01) == served.wait_s("interactive")

        entries += put(served, resident, 3)
        assert pytest.approx(1.5 + 4 * 10 / 9, rel=0.01) == served.wait_s("interactive")
        assert pytest.approx(7.5, rel=0.01) == served.wait_s("bulk")
        with served.expecting(resident, "bulk", 3):
            assert pytest.approx(13.5, rel=0.01) == served.wait_s("bulk")
        model.hold.set()
        await outcomes_of([busy, *entries])


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
        await busy.outcome
        assert 0.0 == served.stalled_for()


def test_fakes_spread_their_scores():
    """The fake's numbers lie strictly between 0 and 1."""
    assert all(0 < chance(str(n)) < 1 for n in range(1000))
