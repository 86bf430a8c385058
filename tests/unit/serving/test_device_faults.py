"""A device whose model fails: who is told, and what goes on."""

import asyncio
import math

import pytest

from models.core.contract import ModelError
from models.core.outcomes import Likelihood
from service.core.errors import Draining, ModelFault
from tests.support.devices import FaultyQueue, NotedQueue, Words, device, holding, outcomes_of, put
from tests.support.fakes import FakeVqa

pytestmark = pytest.mark.anyio


async def test_a_loop_that_ended_by_itself_is_not_alive():
    """Nobody would be served any more: stalled without end, and its callers are told."""
    served, hosted = device(Words(), queue=FaultyQueue)
    await served.__aenter__()
    hosted.queue.broken = True
    [outcome] = await outcomes_of(put(served, hosted, 0))

    assert isinstance(outcome, Draining)
    assert math.inf == served.stalled_for()
    with pytest.raises(ZeroDivisionError):
        await served.__aexit__()
    with pytest.raises(RuntimeError, match="the threads have ended"):
        served.devices[0].slots[0].run(int)


async def test_an_outcome_too_few_is_a_fault_not_a_shift():
    """A model that loses a call fails the batch; no answer goes to the wrong caller."""
    model = Words()
    served, hosted = device(model)
    async with served:
        whole = model.score
        model.score = lambda batch: whole(batch)[: len(batch) - (len(batch) > 1)]
        busy = await holding(model, served, hosted)
        calls = put(served, hosted, *range(3))
        model.hold.set()
        outcomes = await outcomes_of(calls)
        await busy.result

    assert all(isinstance(outcome, ModelFault) for outcome in outcomes)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
async def test_a_number_that_is_not_finite_is_a_fault_of_its_call(broken):
    """Its neighbours in the batch keep their answers."""
    model = FakeVqa()
    served, hosted = device(model)
    sound = Likelihood((-0.1,), -0.1, -3.0)
    model.answer = lambda call: Likelihood((broken,), -0.1, -3.0) if call == "bad" else sound
    async with served:
        fine, bad = await outcomes_of(put(served, hosted, "fine", "bad"))

    assert fine == sound
    assert isinstance(bad, ModelFault)
    assert "the model m0 returned a number that is not finite" == bad.detail


async def test_what_a_model_says_of_a_call_reaches_its_caller():
    """As a fault of that call; its neighbours in the batch keep their answers."""
    model = Words()
    model.answer = lambda call: ModelError("the server sent no numbers") if call == "bad" else call
    served, hosted = device(model)
    async with served:
        fine, bad = await outcomes_of(put(served, hosted, "fine", "bad"))

    assert "fine" == fine
    assert (ModelFault, "the server sent no numbers") == (type(bad), bad.detail)


async def test_a_failed_batch_is_logged_with_its_error(caplog):
    """Once, under the model's name, where the caller only learns that it failed."""
    model = Words()
    whole = model.score
    served, hosted = device(model)
    async with served:
        model.score = lambda batch: whole(batch)[: len(batch) - (len(batch) > 1)]
        outcomes = await outcomes_of(put(served, hosted, *range(3)))

    assert {"the model m0 failed on this call"} == {outcome.detail for outcome in outcomes}
    [said] = [record for record in caplog.records if record.name == "scoregate.device"]
    assert ("batch failed", "m0") == (said.getMessage(), said.model)
    assert "the model returned 2 outcomes for 3 calls" == said.exc_info[1].detail


async def test_the_pace_is_learnt_from_the_halves_of_a_batch_that_failed():
    """From those that were answered: their cost, and their share of the device."""
    model = Words()
    model.fault = lambda call: ValueError() if call == 5 else None
    served, hosted = device(model, queue=NotedQueue)
    async with served:
        await outcomes_of(put(served, hosted, *range(8)))

    assert [4, 1, 2] == [cost for cost, *_ in hosted.queue.learnt[1:]]


async def test_the_pace_is_learnt_from_all_calls_of_a_batch_in_which_one_succeeded():
    """They ran in the same seconds; a batch of calls that all fail teaches nothing."""
    time = [0.0]
    model = Words()
    model.answer = lambda call: ModelError("too long") if str(call).startswith("bad") else call
    served, hosted = device(model, clock=lambda: time[0], queue=NotedQueue)
    async with served:
        for calls in (["bad", "a", "bad 2", "b"], ["bad 3", "bad 4"]):
            model.hold.clear()
            waiting = put(served, hosted, *calls)
            while not model.held:
                await asyncio.sleep(0.001)
            time[0] += 2.0
            model.hold.set()
            await outcomes_of(waiting)

    assert [(4, 2.0)] == [(cost, seconds) for cost, seconds, _ in hosted.queue.learnt[1:]]


async def test_a_model_without_memory_for_its_example_goes_on():
    """Memory comes back; a fault that sticks would end the service."""
    model, examples = Words(), []
    served, hosted = device(model)
    async with served:
        prepare = model.prepare
        model.prepare = lambda call: examples.append(call) or prepare(call)
        model.fault = lambda call: MemoryError()
        [refused] = await outcomes_of(put(served, hosted, "a"))
        model.fault = lambda call: None
        assert isinstance(refused, ModelFault)
        assert ["b"] == await outcomes_of(put(served, hosted, "b"))

    assert [model.example()] == examples


async def test_one_poisoned_call_fails_alone():
    """A failing batch is halved until the bad call stands alone."""
    model = Words()
    model.fault = lambda call: ValueError() if call == 5 else None
    served, hosted = device(model)
    async with served:
        outcomes = await outcomes_of(put(served, hosted, *range(8)))

        assert isinstance(outcomes.pop(5), ModelFault)
        assert [0, 1, 2, 3, 4, 6, 7] == outcomes
        assert served.running


async def test_a_batch_too_large_for_memory_is_split_and_smaller_ones_follow():
    """Everyone is answered; the next batches stay under what failed."""
    model = Words()
    whole = model.score

    def score(batch):
        if len(batch) > 4:
            raise MemoryError
        return whole(batch)

    served, hosted = device(model)
    async with served:
        model.score = score
        busy = await holding(model, served, hosted)
        calls = put(served, hosted, *range(16))
        model.hold.set()
        await busy.result

        assert list(range(16)) == await outcomes_of(calls)
    assert [1, 4, 4, 4, 4] == [len(batch) for batch in model.batches[2:]]


async def test_a_fault_that_sticks_fails_everyone_at_once_and_is_told():
    """When even the example fails, nothing will work again: no call is tried on and on."""
    model, told = Words(), []
    served, hosted = device(model, on_broken=told.append)
    async with served:
        busy = await holding(model, served, hosted)
        calls = put(served, hosted, *range(20))
        model.fault = lambda call: RuntimeError("CUDA error: an illegal access\nmore\nand more")
        model.hold.set()
        outcomes = await outcomes_of([busy, *calls])

        assert all(isinstance(outcome, ModelFault) for outcome in outcomes)
        assert [
            "the model m0 fails on every call since this error: RuntimeError: CUDA error: an illegal access"
        ] == told
        assert not served.running
        assert math.inf == served.stalled_for()
        with pytest.raises(Draining):
            put(served, hosted, 0)


async def test_an_example_without_a_finite_number_is_a_fault_that_sticks():
    """Whether the model checks its numbers or not."""
    model, told = FakeVqa(), []
    served, hosted = device(model, on_broken=told.append)
    async with served:
        model.answer = lambda call: Likelihood((math.nan,), -0.1, -3.0)
        model.fault = lambda call: ValueError("no") if call == "bad" else None
        [outcome] = await outcomes_of(put(served, hosted, "bad"))

    assert isinstance(outcome, ModelFault)
    assert ["the model m0 fails on every call since this error: ValueError: no"] == told


async def test_an_example_that_cannot_be_prepared_any_more_is_a_fault_that_sticks():
    """The device says so, and does not end for an error of its own."""
    model, told = Words(), []
    served, hosted = device(model, on_broken=told.append)
    async with served:
        calls = put(served, hosted, 1)
        model.example = lambda: 1 // 0
        model.fault = lambda call: ValueError("no")
        outcomes = await outcomes_of(calls)

    assert isinstance(outcomes[0], ModelFault)
    assert ["the model m0 fails on every call since this error: ValueError: no"] == told
