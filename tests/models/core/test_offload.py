"""Weights that leave their device and come back, for every family with a demo checkpoint."""

from types import SimpleNamespace

import pytest
import torch

from models.core.memory import Offloaded, device_bytes, tensors_of
from models.core.settings import LocalSettings
from models.families.registry import families

DEMOS = {
    "open_clip": "demo:clip",
    "clip_flant5": "demo:clip_flant5",
    "transformers": "demo:question_llm",
    "transformers_nli": "demo:nli",
    "mask2former": "demo:detector",
}


@pytest.fixture(scope="module", params=DEMOS)
def model(request):
    """A demo model, and its example prepared."""
    family = families()[request.param]
    table = family.settings(family=family.name, role=family.role, checkpoint=DEMOS[family.name])
    assert isinstance(table, LocalSettings)
    return family.load("demo", table)


def test_a_model_gives_the_same_numbers_after_its_weights_were_away(model):
    """Equal, not close; without its weights it gives none."""
    example = model.prepare(model.example())
    before, held = model.score([example]), device_bytes(model, "cpu")
    offloaded = Offloaded(model)

    assert held > 100_000
    assert 0 == device_bytes(model, "cpu")
    with pytest.raises((RuntimeError, IndexError)):
        model.score([example])

    offloaded.restore()
    assert str(before) == str(model.score([example]))
    assert held >= device_bytes(model, "cpu") > 100_000  # features are computed again


def test_a_model_that_does_not_fit_takes_no_memory():
    """It can be restored later."""
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
    before = network(torch.ones(2))
    offloaded = Offloaded(network)
    tensor, _, host = offloaded._kept[-1]
    offloaded._kept[-1] = tensor, torch.device("cuda:99"), host
    with pytest.raises((RuntimeError, AssertionError)):
        offloaded.restore()
    assert 0 == device_bytes(network, "cpu")

    offloaded._kept[-1] = tensor, torch.device("cpu"), host
    offloaded.restore()
    assert torch.equal(before, network(torch.ones(2)))


def test_every_tensor_of_a_network_is_found_once():
    """In attributes of networks and of objects, in lists and dicts; shared ones once."""

    class Own:
        def __init__(self):
            self.network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 2))
            self.network.cache = {"rows": [torch.ones(5)]}
            self.again = self.network[0]
            self.words = ("a", torch.zeros(7))

    found = tensors_of(Own())
    assert sorted([6, 3, 6, 2, 5, 7]) == sorted(tensor.numel() for tensor in found)


def test_weights_that_are_not_kept_are_gone():
    """As of a model that is unloaded."""
    network = torch.nn.Linear(2, 3)
    Offloaded([network], keep=False).restore()

    assert [0, 0] == [tensor.numel() for tensor in network.parameters()]


class Cache:
    """As a family of another package may have it."""

    def __init__(self):
        self.rows = [torch.ones(2)]

    def forget(self):
        self.rows.clear()


def test_what_a_model_can_compute_again_is_freed_and_not_moved():
    """Of any object in it with a method for that; its tensors are not among those that come back."""
    cache, weights = Cache(), torch.ones(3)
    model = SimpleNamespace(parts=[cache], weights=weights)
    offloaded = Offloaded(model)
    assert ([], 0) == (cache.rows, weights.numel())

    offloaded.restore()
    assert ([], 3) == (cache.rows, weights.numel())
