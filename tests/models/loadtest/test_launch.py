"""The benchmark of launching batches runs networks of full depth, on several threads."""

import re

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from loadtest import launch
from models.families.clip_flant5 import XXL


@pytest.fixture(autouse=True)
def threads():
    """It sets torch's number of threads; other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Attention(TorchFunctionMode):
    """Counts what is called."""

    called = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.called += func is nn.functional.scaled_dot_product_attention
        return func(*args, **(kwargs or {}))


def test_it_prints_a_row_for_each_network(capsys):
    """Milliseconds for one thread and for two."""
    assert 0 == launch.main(["--threads", "1", "2", "--rounds", "1", "--seconds", "0.01"])
    head, _, *table = capsys.readouterr().out.splitlines()
    assert head.endswith("| 1 | 2 |")
    assert all(re.fullmatch(r"\| CLIP.* \| \d+\.\d \| \d+\.\d \|", row) for row in table)
    assert 2 == len(table)


def test_it_runs_as_many_layers_as_an_xxl():
    """XL and XXL differ in widths, which cost nothing here."""
    batch = launch.flant5()
    with Attention() as attention:
        batch()

    vision = launch.TOWER["num_hidden_layers"] - 1  # the last one's output is not used
    assert vision + XXL.config["num_layers"] + XXL.config["num_decoder_layers"] == attention.called
