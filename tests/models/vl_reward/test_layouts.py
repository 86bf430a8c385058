"""Layouts of checkpoints that released code and versions of transformers have, each with the same outputs."""

from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.contract.qwens import REWARDS
from tests.support.vl_checkpoints import outputs


def renamed(directory):
    """Names of newer versions of transformers."""
    held = load_file(directory / "HPSv3.safetensors")
    new = {
        f"model.{name}"
        if name.startswith("visual.")
        else f"model.language_model.{name.removeprefix('model.')}"
        if name.startswith("model.")
        else name: each
        for name, each in held.items()
    }
    save_file(new, directory / "HPSv3.safetensors")


def pickled(directory, below=""):
    """A file of PyTorch, as it was released, with the weights one level *below*."""
    [path] = directory.glob("*.safetensors")
    held = load_file(path)
    torch.save({below: held} if below else held, path.with_suffix(".pth"))
    path.unlink()


def of_a_later_step(directory):
    """The last step is that with the largest number, not with the last name."""
    (directory / "checkpoint-20").rename(directory / "checkpoint-100")
    for name in ("checkpoint-99", "checkpoint-999-old"):
        (directory / name).mkdir()
        (directory / name / "model.pth").write_bytes(b"-")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("hpsv3", renamed),
        ("hpsv3", partial(pickled, below="model")),
        ("editreward", pickled),
        ("videoalign", of_a_later_step),
    ],
)
def test_other_layouts_have_the_same_outputs(own, models, name, change):
    """Names of either version of transformers, a file of PyTorch, and several steps of a training."""
    directory, kind = own(name), REWARDS[name]
    change(directory)

    assert outputs(models(name), kind.calls[0]) == outputs(kind.load(directory), kind.calls[0])
