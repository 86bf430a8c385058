"""The first calls of a model on its device."""

import math
import sys
from dataclasses import dataclass, field, replace
from itertools import count
from threading import get_ident
from types import ModuleType, SimpleNamespace

import pytest

from models.core.calls import EditCall, RewardCall, VideoCall
from models.core.contract import ModelError
from models.core.outcomes import Reward
from models.families.fake.model import GREY
from service.core.errors import ModelFault
from service.core.settings import NotYet
from service.serving.batcher.device import LARGE_MODEL_S, ExecutionSlot, is_large, measure, warm_up
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

    with pytest.raises(
        NotYet, match=r"models\.m0: no memory is left for its test call: .* Tried to allocate 2 GiB"
    ):
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


@pytest.mark.parametrize(
    ("answer", "how"),
    [(ModelError("wrong weights"), "wrong weights"), (Reward((math.nan,)), "returned a number that is not")],
)
async def test_a_model_that_fails_on_its_test_call_ends_the_start(answer, how):
    """The line says how."""
    model = FakeVqa()
    model.answer = lambda call: answer
    served, _ = device(model)
    with pytest.raises(ModelFault, match=rf"m0: the model failed on its test call: .*{how}"):
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


def on_cores(model, number, *, reentrant=True):
    """A model that is not warm yet, and its devices."""
    model.info = replace(model.info, reentrant=reentrant)
    served, hosted = device(model, cores=number)
    return hosted, served.devices


@pytest.mark.parametrize(
    ("cores", "reentrant", "seconds", "large"),
    [
        (2, True, LARGE_MODEL_S, True),
        (2, True, LARGE_MODEL_S - 0.001, False),
        (2, False, 1.0, False),
        (1, True, 1.0, False),
    ],
)
async def test_a_model_is_large_if_one_of_several_cores_takes_long_for_its_example(
    cores, reentrant, seconds, large
):
    """One that has a batch at a time anyway is not measured."""
    times = iter([0.0, seconds])
    measured = on_cores(FakeVqa(), cores, reentrant=reentrant)

    assert large is await is_large(*measured, lambda: next(times))


async def test_whether_a_model_is_large_is_measured_on_the_last_slot():
    """Its thread has no helpers, which those of the first slot may get."""
    model = FakeVqa()
    hosted, [cpu] = on_cores(model, 3)
    seen = []
    model.answer = lambda call: seen.append(get_ident())

    await is_large(hosted, [cpu], lambda: 0.0)
    assert [await cpu.slots[2].run(get_ident)] * 2 == seen


async def test_a_fault_while_a_model_is_measured_names_it_and_its_test_call():
    """As in a warm-up."""
    model = FakeVqa()
    model.answer = lambda call: ModelError("wrong weights")
    with pytest.raises(ModelFault, match=r"m0: the model failed on its test call: wrong weights"):
        await is_large(*on_cores(model, 2), lambda: 0.0)

    model.fault = lambda call: MemoryError("2 GiB")
    with pytest.raises(NotYet, match=r"models\.m0: no memory is left for its test call: MemoryError: 2 GiB"):
        await is_large(*on_cores(model, 2), lambda: 0.0)


class OutOfMemoryError(RuntimeError):
    """As torch has it."""


class Torch(ModuleType):
    """As much of it as a device calls."""

    OutOfMemoryError = OutOfMemoryError

    def get_num_threads(self):
        return 1


@dataclass
class Gpu:
    """A GPU that is not there, on which tensors took 9.75 GB; the threads of calls are kept."""

    bytes: dict[str, int] = field(default_factory=lambda: {"cuda:0": 1})
    threads: list[int] = field(default_factory=list)

    def is_available(self):
        return True

    def reset_peak_memory_stats(self, device):
        self.bytes[device] = 0

    def max_memory_allocated(self, device):
        return self.bytes[device] + 9_750_000_000


@pytest.fixture
def gpu(monkeypatch):
    cuda = Gpu()
    torch = Torch("torch")
    torch.cuda, torch.set_num_threads = cuda, cuda.threads.append
    monkeypatch.setitem(sys.modules, "torch", torch)
    return cuda


class Recording(FakeVqa):
    """Keeps the digests of the pictures of each batch; none fits that has more than *fits* calls."""

    def __init__(self, device="cuda:0", fits=8):
        super().__init__()
        self.seen, self._fits = [], fits
        self.info = replace(self.info, device=device)

    def score(self, batch):
        self.seen.append({prepared.data.images[-1].digest for prepared in batch})
        if len(batch) > self._fits:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return super().score(batch)


@pytest.mark.parametrize("example", [RewardCall(GREY), EditCall(GREY, "", GREY), VideoCall((GREY,), "")])
async def test_a_start_on_a_gpu_measures_the_largest_batch(gpu, caplog, example):
    """As many calls as the limits allow, each with pictures of its own; the log has what they took."""
    caplog.set_level("INFO", "scoregate.device")
    model, slot = Recording(), ExecutionSlot()
    model.example = lambda: example
    await measure("m0", model, slot, 8)
    slot.close()

    assert [8] == [*map(len, model.seen)]
    assert {1} == {*gpu.threads}
    assert {"cuda:0": 0} == gpu.bytes
    assert "models.m0: cuda:0: 9.8 GB with the largest batch, 8 calls" in caplog.messages


async def test_a_pool_measures_the_largest_batch_of_each_model_on_a_gpu(gpu, caplog):
    """On the slot of its batches; as many calls as their limits allow."""
    caplog.set_level("INFO", "scoregate.device")
    served, _ = device(Recording(), limits={"max_items": 6})
    async with served:
        assert "models.m0: cuda:0: 9.8 GB with the largest batch, 6 calls" in caplog.messages


async def test_a_model_that_fails_on_the_largest_batch_ends_the_start(gpu):
    """The line names the batch."""
    model, slot = Recording(), ExecutionSlot()
    model.answer = lambda call: ModelError("wrong weights")
    with pytest.raises(ModelFault, match=r"m0: the model failed on a batch of 8 test calls: wrong weights"):
        await measure("m0", model, slot, 8)
    slot.close()


async def test_the_largest_batch_must_fit_at_the_start(gpu):
    """Or the first full batch would be halved; the line names the limits."""
    slot = ExecutionSlot()
    with pytest.raises(NotYet, match=r"models\.m0: no memory is left on cuda:0 for 8 calls, .* lower batch"):
        await measure("m0", Recording(fits=4), slot, 8)
    slot.close()


async def test_nothing_is_measured_on_a_cpu(gpu):
    """It has no such limit, also beside a GPU."""
    model, slot = Recording("cpu"), ExecutionSlot()
    await measure("m0", model, slot, 8)
    slot.close()

    assert [] == model.seen
