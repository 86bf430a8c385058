"""The first calls of a model on its device."""

from itertools import count

import pytest
import torch

from models.calls import RewardCall
from models.outcomes import Reward
from service.errors import ModelFault
from service.settings import NotYet
from tests.serving.devices import device
from tests.support.fakes import FakeVqa

pytestmark = pytest.mark.anyio


class Counting(FakeVqa):
    """Gives each call another number."""

    def __init__(self, step):
        super().__init__()
        self._numbers = count(0, step)

    def example(self):
        return RewardCall(None)

    def prepare(self, call):
        return super().prepare("a call")

    def answer(self, call):
        return Reward((next(self._numbers),))


async def test_a_device_without_memory_for_the_test_call_may_have_some_later():
    """Another process may be ending on it; the line names the model."""
    model = FakeVqa()
    model.fault = lambda call: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
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
