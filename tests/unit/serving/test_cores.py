"""How many cores a thread computes with, where torch is loaded and where it is not."""

import pytest

from service.serving.batcher import cpu_policy, execution_slot


class Torch:
    """As much of it as says how many threads compute."""

    class OutOfMemoryError(Exception):
        pass

    def __init__(self, threads):
        self.threads = threads

    def get_num_threads(self):
        return self.threads

    def set_num_threads(self, threads):
        self.threads = threads


@pytest.fixture
def torch(monkeypatch):
    loaded = Torch(6)
    for module in (cpu_policy, execution_slot):
        monkeypatch.setattr(module, "loaded_torch", lambda: loaded)
    return loaded


@pytest.fixture
def without_torch(monkeypatch):
    for module in (cpu_policy, execution_slot):
        monkeypatch.setattr(module, "loaded_torch", lambda: None)


class Model:
    def score(self, batch):
        return [f"scored {one}" for one in batch]


def test_all_cores_are_those_before_any_thread_was_given_fewer(torch):
    """However many this thread computes with by now."""
    cpu_policy.compute_on_one_core()

    assert (1, 6) == (torch.threads, cpu_policy.all_cores())


def test_a_batch_is_computed_with_the_cores_that_it_is_given(torch):
    """The answers are the model's."""
    assert ["scored a", "scored b"] == cpu_policy.compute(3, Model(), ["a", "b"])
    assert 3 == torch.threads


@pytest.mark.usefixtures("without_torch")
def test_without_torch_there_is_one_core_and_a_batch_is_computed_all_the_same():
    """As in a gateway, whose models are all elsewhere."""
    cpu_policy.compute_on_one_core()

    assert 1 == cpu_policy.all_cores()
    assert ["scored a"] == cpu_policy.compute(3, Model(), ["a"])


@pytest.mark.parametrize(
    ("exc", "expected"), [(MemoryError(), True), (Torch.OutOfMemoryError(), True), (ValueError(), False)]
)
def test_a_smaller_batch_may_succeed_where_memory_ran_out(torch, exc, expected):
    """Of the machine, or of its device."""
    assert expected is execution_slot.is_out_of_memory(exc)


@pytest.mark.usefixtures("without_torch")
def test_memory_runs_out_without_torch_too():
    """Any other error stays one."""
    assert execution_slot.is_out_of_memory(MemoryError())
    assert not execution_slot.is_out_of_memory(ValueError())
