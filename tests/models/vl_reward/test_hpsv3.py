"""HPSv3: the layouts of checkpoints that its released code and versions of transformers have."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.models.contract.kind import ON_THE_CPU
from tests.models.contract.qwens import HPSV3
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


def pickled(directory):
    """The other name that the released code reads, with the weights one level below."""
    path = directory / "HPSv3.safetensors"
    torch.save({"model": load_file(path)}, directory / "HPSv3.pth")
    path.unlink()


@pytest.mark.parametrize("change", [renamed, pickled])
def test_other_layouts_have_the_same_outputs(directories, models, tmp_path, change):
    """Names of either version of transformers, and a file of PyTorch."""
    shutil.copytree(directories("hpsv3"), tmp_path, dirs_exist_ok=True)
    change(tmp_path)
    call, other = HPSV3.calls[0], HPSV3.model(tmp_path, **ON_THE_CPU)

    assert outputs(models("hpsv3"), call) == outputs(other, call)
