"""PAL4VST: its file, which MMSegmentation wrote."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from transformers.models.swin.modeling_swin import SwinPatchMerging

from models.core.contract import CheckpointError
from models.families.artifact.model import Pal4Vst, by_pixel


def loaded(directory):
    return Pal4Vst(directory, dtype="float32", device="cpu")


def test_a_downsampling_takes_its_inputs_in_the_order_of_unfold():
    """As MMSegmentation computes it: unfold, a norm, and a product without bias."""
    torch.manual_seed(1)
    picture, merging = torch.randn(1, 6, 4, 8), SwinPatchMerging(6)
    norm, product = nn.LayerNorm(24), nn.Linear(24, 12, bias=False)
    nn.init.normal_(norm.weight)
    merging.load_state_dict(
        {
            "reduction.weight": by_pixel(product.weight),
            "norm.weight": by_pixel(norm.weight),
            "norm.bias": by_pixel(norm.bias),
        }
    )
    theirs = product(norm(nn.functional.unfold(picture, 2, stride=2).transpose(1, 2)))
    ours = merging(picture.flatten(2).transpose(1, 2), (4, 8))

    assert torch.allclose(theirs, ours, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t.pop("decode_head.fpn_bottleneck.conv.weight"), "don't fit: 1 missing"),
        (lambda t: t.pop("decode_head.conv_seg.weight"), "is not a UPerNet on a Swin"),
        (lambda t: t.update({"decode_head.more": torch.zeros(1)}), "don't fit: 1 unexpected"),
        (lambda t: t.update({"decode_head.conv_seg.weight": torch.zeros(3, 8, 1, 1)}), "has 3 classes"),
    ],
)
def test_another_network_is_refused(directories, tmp_path, change, told):
    """With the file and the tensor."""
    tensors = torch.load(directories("artifact") / "pal.pth")["state_dict"]
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    change(tensors)
    save_file(tensors, tmp_path / "pal.safetensors")
    with pytest.raises(CheckpointError, match=f"pal.safetensors: .*{told}"):
        loaded(tmp_path)


def test_a_folder_needs_one_file_of_plain_tensors(tmp_path):
    """Two could not be told apart, and nothing else than tensors is unpickled."""
    with pytest.raises(CheckpointError, match="no weights found"):
        loaded(tmp_path)
    torch.save({"state_dict": {}, "hook": pytest.raises}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="not unpickled"):
        loaded(tmp_path)
    (tmp_path / "b.pth").touch()
    with pytest.raises(CheckpointError, match="has 2 files"):
        loaded(tmp_path)
