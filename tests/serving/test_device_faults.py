"""A device whose model fails: who is told, and what goes on."""

import asyncio
import math

import pytest
import torch

from models.outcomes import Likelihood
from service.errors import Draining, ModelFault
from tests.serving.devices import Words, device, holding, outcomes_of, put
from tests.support.fakes import FakeVqa

pytestmark = pytest.mark.anyio


async def test_a_loop_that_ended_by_itself_is_not_alive():
    """Nobody would be served any more: stalled without end, and its callers are told."""
    served, resident = device(Words())
    async with served:
        resident.queue.take = lambda now: 1 / 0
        [call] = put(served, resident, 0)
        [loop] = served._tasks
        await asyncio.wait([loop])

        assert math.inf == served.stalled_for()
        with pytest.raises(ZeroDivisionError):
            loop.result()
        served._tasks = []
        del resident.queue.take
        call.result.cancel()


async def test_an_outcome_too_few_is_a_fault_not_a_shift():
    """A model that loses a call fails the batch; no answer goes to the wrong caller."""
    model = Words()
    served, resident = device(model)
    async with served:
        whole = model.score
        model.score = lambda batch: whole(batch)[: len(batch) - (len(batch) > 1)]
        busy = await holding(model, served, resident)
        calls = put(served, resident, *range(3))
        model.hold.set()
        outcomes = await outcomes_of(calls)
        await busy.result

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
        calls = put(served, resident, *range(16))
        model.hold.set()
        await busy.result

        assert list(range(16)) == await outcomes_of(calls)
    assert [1, 4, 4, 4, 4] == [len(batch) for batch in model.batches[2:]]


async def test_a_fault_that_sticks_fails_everyone_at_once_and_is_told():
    """When even the example fails, nothing will work again: no call is tried on and on."""
    model, told = Words(), []
    served, resident = device(model, on_broken=told.append)
    async with served:
        busy = await holding(model, served, resident)
        calls = put(served, resident, *range(20))
        model.fault = lambda call: RuntimeError("CUDA error: an illegal access\nmore")
        model.hold.set()
        outcomes = await outcomes_of([busy, *calls])

        assert all(isinstance(outcome, ModelFault) for outcome in outcomes)
        assert [
            "the model m0 fails on every call since this error: RuntimeError: CUDA error: an illegal access"
        ] == told
        assert not served.running
        assert math.inf == served.stalled_for()
        with pytest.raises(Draining):
            put(served, resident, 0)
