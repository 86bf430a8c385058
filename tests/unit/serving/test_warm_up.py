"""The first calls of a model on its device."""

import sys
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest

from models.core.calls import RewardCall
from models.core.contract import ModelError
from models.core.outcomes import Reward
from service.core.errors import ModelFault
from service.core.settings import NotYet
from service.serving.batcher.device import ExecutionSlot, measure, warm_up
from tests.support.devices import device, outcomes_of, pool, put
from tests.support.fakes import FakeVqa

pytestmark = pytest.mark.anyio


class Counting(FakeVqa):
    """Gives each call another number."""

    def __init__(self, step):
        super().__init__()
        self._numbers = count(0, step)

    def example(self):
        return RewardCall(None)

    def answer(self, call):
        return Reward((next(self._numbers),))


async def test_a_device_without_memory_for_the_test_call_may_have_some_later():
    """Another process may be ending on it; the line names the model."""
    model = FakeVqa()
    model.fault = lambda call: MemoryError("CUDA out of memory. Tried to allocate 2 GiB")
    served, _ = device(model)

    with pytest.raises(NotYet, match=r"models\.m0: no memory is left .* Tried to allocate 2 GiB"):
        async with served:
            pass


async def test_a_model_that_answers_its_test_call_differently_each_time_ends_the_start():
    """No number of it could be relied on; rounding is no difference."""
    served, _ = device(Counting(1))
    with pytest.raises(ModelFault, match="different numbers each time"):
        async with served:
            pass

    served, _ = device(Counting(0.001))
    async with served:
        pass


async def test_a_model_that_fails_on_its_test_call_ends_the_start():
    """The line says how."""
    model = FakeVqa()
    model.answer = lambda call: ModelError("wrong weights")
    served, _ = device(model)
    with pytest.raises(ModelFault, match=r"m0: the model failed on its test call: wrong weights"):
        async with served:
            pass


async def test_a_device_that_is_taken_out_during_a_warm_up_does_not_end_the_start():
    """The copies on the others serve."""
    served, hosted, copies = pool("a", "b")

    def lost(call):
        hosted.copies.pop("b", None)
        return call

    copies["a"].answer = lost
    async with served:
        assert ["here"] == await outcomes_of(put(served, hosted, "here"))


async def test_the_first_prediction_is_that_of_the_last_test_call():
    """The one before pays for what is paid once; other errors than of memory end the start as they are."""
    times = iter([10.0, 11.0, 20.0, 25.0])
    model = FakeVqa()
    place = SimpleNamespace(score=lambda model, batch, threads: scored(model, batch))

    async def scored(model, batch):
        return model.score(batch)

    prepared = model.prepare(model.example())
    assert (prepared.cost, 5.0) == (await warm_up("m0", [(model, place, 1)], lambda: next(times)))[:2]

    model.fault = lambda call: ValueError("no weights")
    with pytest.raises(ValueError, match="no weights"):
        await warm_up("m0", [(model, place, 1)], lambda: 0.0)


class OutOfMemoryError(RuntimeError):
    """As torch has it."""


@pytest.fixture
def gpu(monkeypatch):
    """A GPU that is not there, on which tensors took 9.9 GB."""
    cuda = SimpleNamespace(
        is_available=lambda: True,
        reset_peak_memory_stats=lambda device: None,
        max_memory_allocated=lambda device: 9_900_000_000,
    )
    torch = SimpleNamespace(
        cuda=cuda,
        OutOfMemoryError=OutOfMemoryError,
        get_num_threads=lambda: 1,
        set_num_threads=lambda number: None,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)


class Recording(FakeVqa):
    """Keeps the digests of the pictures of each batch; none fits that has more than *fits* calls."""

    def __init__(self, device="cuda:0", fits=8):
        super().__init__()
        self.seen, self._fits = [], fits
        self.info = replace(self.info, device=device)

    def score(self, batch):
        self.seen.append({prepared.data.image.digest for prepared in batch})
        if len(batch) > self._fits:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return super().score(batch)


async def test_a_start_on_a_gpu_measures_the_largest_batch(gpu, caplog):
    """As many calls as the limits allow, each with a picture of its own; the log has what they took."""
    caplog.set_level("INFO", "scoregate.device")
    model, slot = Recording(), ExecutionSlot()
    await measure("m0", model, slot, 8)
    slot.close()

    assert [8] == [*map(len, model.seen)]
    assert "models.m0: cuda:0: 9.9 GB with the largest batch, 8 calls" in caplog.messages


async def test_the_largest_batch_must_fit_at_the_start(gpu):
    """Or the first full batch would be halved; the line names the limits."""
    slot = ExecutionSlot()
    with pytest.raises(NotYet, match=r"models\.m0: no memory is left on cuda:0 for 8 calls, .* lower batch"):
        await measure("m0", Recording(fits=4), slot, 8)
    slot.close()


async def test_nothing_is_measured_on_a_cpu():
    """It has no such limit."""
    model, slot = Recording("cpu"), ExecutionSlot()
    await measure("m0", model, slot, 8)
    slot.close()

    assert [] == model.seen
