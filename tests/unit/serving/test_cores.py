"""How many cores a thread computes with, where torch is loaded and where it is not."""

import asyncio
import sys
import threading

import pytest

from service.serving.batcher import device
from service.serving.batcher.device import Device, ExecutionSlot
from service.serving.batcher.scheduler import HostedModel


class Torch:
    """
    As much of it as says how many threads compute.

    Attributes:
        numbers: that were set, in order.
    """

    class OutOfMemoryError(Exception):
        pass

    def __init__(self, threads):
        self.threads, self.numbers = threads, []

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, threads):
        self.threads = threads
        self.numbers.append(threads)


@pytest.fixture
def torch(monkeypatch):
    loaded = Torch(6)
    monkeypatch.setitem(sys.modules, "torch", loaded)
    return loaded


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


class Model:
    def score(self, batch):
        return [f"scored {one}" for one in batch]


def test_all_cores_are_those_before_any_thread_was_given_fewer(torch):
    """However many this thread computes with by now."""
    device.compute_on_one_core()

    assert (1, 6) == (torch.threads, device.all_cores())


def test_a_batch_is_computed_with_the_cores_that_it_is_given(torch):
    """The answers are the model's."""
    assert ["scored a", "scored b"] == device.compute(torch, 3, Model(), ["a", "b"])
    assert 3 == torch.threads


@pytest.mark.usefixtures("without_torch")
def test_without_torch_there_is_one_core_and_a_batch_is_computed_all_the_same():
    """As in a gateway, whose models are all elsewhere."""
    device.compute_on_one_core()

    assert 1 == device.all_cores()
    assert ["scored a"] == device.compute(None, 3, Model(), ["a"])


@pytest.mark.anyio
async def test_a_slot_has_one_thread_which_begins_with_one_core(torch):
    """Two batches run one after the other, with the cores that each is given."""
    slot, both, seen = ExecutionSlot(), threading.Event(), []

    class Seen:
        def score(self, batch):
            both.wait()
            seen.append(threading.current_thread())
            return batch

    scores = [asyncio.ensure_future(slot.score(Seen(), [call], 3)) for call in "ab"]
    await asyncio.sleep(0)
    both.set()
    assert [["a"], ["b"]] == await asyncio.gather(*scores)
    slot.close()

    assert seen[0] is seen[1]
    assert seen[0].name.startswith("device")
    assert [1, 3, 3] == torch.numbers


@pytest.mark.parametrize(("cores", "slots"), [(1, 1), (2, 2), (64, 8)])
def test_a_cpu_has_a_slot_for_each_core_up_to_eight(cores, slots):
    """A GPU has one, whose thread computes nothing itself."""
    assert slots == len(Device("cpu", cores).slots)


@pytest.mark.parametrize(("large", "slots"), [(None, 8), (False, 8), (True, 1)])
def test_a_large_model_runs_on_the_first_slot_of_a_device_alone(large, slots):
    """Another runs on all of them."""
    assert slots == HostedModel("m0", None, None, large=large).slots_of(8)


@pytest.mark.parametrize(
    ("exc", "expected"), [(MemoryError(), True), (Torch.OutOfMemoryError(), True), (ValueError(), False)]
)
def test_a_smaller_batch_may_succeed_where_memory_ran_out(torch, exc, expected):
    """Of the machine, or of its device."""
    assert expected is device.is_out_of_memory(exc)


@pytest.mark.usefixtures("without_torch")
def test_memory_runs_out_without_torch_too():
    """Any other error stays one."""
    assert device.is_out_of_memory(MemoryError())
    assert not device.is_out_of_memory(ValueError())
