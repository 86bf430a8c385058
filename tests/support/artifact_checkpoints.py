"""A tiny UPerNet on a Swin with random weights, as MMSegmentation saves it."""

from pathlib import Path
from typing import Any

import torch
from transformers import SwinConfig, UperNetConfig, UperNetForSemanticSegmentation

# Names of transformers and of MMSegmentation, in this order.
NAMES = (
    ("backbone.swin.embeddings.patch_embeddings.", "backbone.patch_embed."),
    ("backbone.swin.embeddings.norm", "backbone.patch_embed.norm"),
    ("backbone.swin.encoder.layers.", "backbone.stages."),
    (".layernorm_before.", ".norm1."),
    (".layernorm_after.", ".norm2."),
    (".attention.relative_position_bias.", ".attn.w_msa."),
    (".attention.o_proj.", ".attn.w_msa.proj."),
    (".mlp.fc1.", ".ffn.layers.0.0."),
    (".mlp.fc2.", ".ffn.layers.1."),
    ("decode_head.classifier.", "decode_head.conv_seg."),
    (".batch_norm.", ".bn."),
    *((f"backbone.hidden_states_norms.stage{n + 1}.", f"backbone.norm{n}.") for n in range(4)),
)


def network() -> UperNetForSemanticSegmentation:
    """The network as transformers has it, with random statistics of its batches, too."""
    torch.manual_seed(7)
    stages = ["stage1", "stage2", "stage3", "stage4"]
    swin = SwinConfig(
        embed_dim=8,
        depths=[2, 1, 1, 1],
        num_heads=[1, 2, 2, 4],
        window_size=4,
        mlp_ratio=2.0,
        out_features=stages,
        initializer_range=0.3,
    )
    config = UperNetConfig(backbone_config=swin, hidden_size=8, num_labels=2, use_auxiliary_head=False)
    made = UperNetForSemanticSegmentation(config).eval()
    for name, tensor in made.state_dict().items():
        if "norm" in name and tensor.is_floating_point():
            tensor.copy_(torch.rand_like(tensor) + 0.5)
        if "relative_position_bias_table" in name:
            tensor.copy_(torch.randn_like(tensor))
    with torch.inference_mode():  # so that both classes occur
        rest, artifact = made(torch.randn(1, 3, 512, 512)).logits[0]
        made.decode_head.classifier.bias[1] -= (artifact - rest).median()
    return made


def save(made: Any, file: Path) -> Path:
    """Save *made* with MMSegmentation's names and order of numbers; return the folder."""
    tensors = {name: tensor for name, tensor in made.state_dict().items() if "swin.layernorm" not in name}
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if ".attention.q_proj." in name:
            parts = [tensors[name.replace("q_proj", f"{letter}_proj")] for letter in "qkv"]
            found[given(name.replace(".attention.q_proj.", ".attn.w_msa.qkv."))] = torch.cat(parts)
        elif ".downsample." in name:
            found[given(name)] = by_channel(tensor)
        elif ".k_proj." not in name and ".v_proj." not in name:
            found[given(name)] = tensor
    found["backbone.stages.0.blocks.0.attn.w_msa.relative_position_index"] = torch.zeros(16, 16)
    found["auxiliary_head.conv_seg.bias"] = torch.zeros(2)
    torch.save({"meta": {"epoch": 1}, "state_dict": found}, file)
    return file.parent


def given(name: str) -> str:
    """The name in a file of MMSegmentation."""
    for ours, theirs in NAMES:
        name = name.replace(ours, theirs)
    return name


def by_channel(tensor: torch.Tensor) -> torch.Tensor:
    """The inputs of a downsampling in the order of `nn.Unfold`: each channel's four pixels, by rows."""
    count = tensor.shape[-1] // 4
    at = {pixel: place for place, pixel in enumerate([(0, 0), (1, 0), (0, 1), (1, 1)])}  # row, column
    order = [at[y, x] * count + channel for channel in range(count) for y in (0, 1) for x in (0, 1)]
    return tensor[..., order]
