"""The benchmark of launching batches runs networks of full depth, on several threads."""

import re

import pytest
import torch
from torch import nn

from loadtest import launch
from models.families.clip_flant5 import XXL


@pytest.fixture(autouse=True)
def threads():
    """It sets torch's number of threads; other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_it_prints_a_row_for_each_network(capsys, monkeypatch):
    """Milliseconds for one thread and for two."""
    monkeypatch.setattr(launch, "SECONDS", 0.01)
    monkeypatch.setattr(launch, "ROUNDS", 1)
    monkeypatch.setattr(launch, "THREADS", (1, 2))

    assert 0 == launch.main()
    head, _, *table = capsys.readouterr().out.splitlines()
    assert head.endswith("| 1 | 2 |")
    assert all(re.fullmatch(r"\| CLIP.* \| \d+\.\d \| \d+\.\d \|", row) for row in table)
    assert 2 == len(table)


def test_it_runs_as_many_layers_as_an_xxl(monkeypatch):
    """XL and XXL differ in widths, which cost nothing here."""
    called = []
    attend = nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        nn.functional,
        "scaled_dot_product_attention",
        lambda *all, **more: called.append(1) or attend(*all, **more),
    )
    launch.flant5()()

    vision = launch.TOWER["num_hidden_layers"] - 1  # the last one's output is not used
    assert vision + XXL.config["num_layers"] + XXL.config["num_decoder_layers"] == len(called)
