"""EditReward: an edited picture is judged beside its source."""

import torch
from safetensors.torch import load_file

from models.core.calls import EditCall
from tests.models.contract.kind import ON_THE_CPU
from tests.models.contract.qwens import EDITREWARD
from tests.support.vl_checkpoints import outputs, qwen2_5_vl


def test_the_source_is_part_of_the_key(models, answers):
    """Source and picture the other way round are another call with other outputs."""
    call = EDITREWARD.calls[0]
    swapped = EditCall(call.source, call.prompt, call.image)

    assert call.key(()) != swapped.key(())
    [other] = outputs(models("editreward"), swapped)
    assert max(abs(a - b) for a, b in zip(other, answers("editreward")[0].outputs, strict=True)) > 1e-3


def test_a_file_of_pytorch_has_the_same_outputs(directories, models, tmp_path):
    """As the released checkpoint is."""
    torch.save(load_file(directories("editreward") / "model.safetensors"), qwen2_5_vl(tmp_path) / "model.pth")
    call, other = EDITREWARD.calls[0], EDITREWARD.model(tmp_path, **ON_THE_CPU)

    assert outputs(models("editreward"), call) == outputs(other, call)
