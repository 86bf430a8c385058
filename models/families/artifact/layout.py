"""
The layout of PAL4VST's checkpoints: a UPerNet on a Swin, as MMSegmentation saves it.

Sizes are derived from the tensors' shapes, since the published configuration is not part of the file.
"""

import re
from collections.abc import Mapping
from math import isqrt
from pathlib import Path

import torch
from transformers import SwinConfig, UperNetConfig

from models.core.contract import CheckpointError

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
STAGES = ("stage1", "stage2", "stage3", "stage4")
POOLS = [1, 2, 3, 6]  # the sides of the pyramid's grids
QKV = ".attn.w_msa.qkv."
# Of training, and a buffer that is computed.
UNUSED = re.compile(r"auxiliary_head\..*|.*\.(relative_position_index|num_batches_tracked)")
# The names in the file to those of transformers; all others are equal.
NAMES = (
    (r"^backbone\.patch_embed\.projection\.", "backbone.swin.embeddings.patch_embeddings.projection."),
    (r"^backbone\.patch_embed\.norm\.", "backbone.swin.embeddings.norm."),
    (r"^backbone\.stages\.", "backbone.swin.encoder.layers."),
    (r"^backbone\.norm(\d)\.", lambda found: f"backbone.hidden_states_norms.stage{int(found[1]) + 1}."),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.w_msa\.relative_position", ".attention.relative_position_bias.relative_position"),
    (r"\.attn\.w_msa\.proj\.", ".attention.o_proj."),
    (r"\.ffn\.layers\.0\.0\.", ".mlp.fc1."),
    (r"\.ffn\.layers\.1\.", ".mlp.fc2."),
    (r"^decode_head\.conv_seg\.", "decode_head.classifier."),
    (r"\.bn\.", ".batch_norm."),
)


def weights_files(directory: Path) -> list[Path]:
    """Return the one file with weights; safetensors come first.  Raises `CheckpointError`."""
    for suffix in SUFFIXES:
        found = sorted(directory.glob(f"*{suffix}"))
        if len(found) > 1:
            raise CheckpointError(f"{directory}: has {len(found)} files *{suffix}; one is needed")
        if found:
            return found
    raise CheckpointError(f"{directory}: no weights found (looked for *{', *'.join(SUFFIXES)})")


def config_of(path: Path, shapes: Mapping[str, torch.Tensor]) -> UperNetConfig:
    """Derive the network's configuration from the *shapes* of its tensors.  Raises `CheckpointError`."""
    try:
        width, _, patch, _ = shapes["backbone.patch_embed.projection.weight"].shape
        blocks = [stage_blocks(shapes, stage) for stage in range(len(STAGES))]
        tables = [
            shapes[f"backbone.stages.{stage}.blocks.0.attn.w_msa.relative_position_bias_table"].shape
            for stage in range(len(STAGES))
        ]
        hidden = len(shapes["backbone.stages.0.blocks.0.ffn.layers.0.0.weight"])
        channels = len(shapes["decode_head.lateral_convs.0.conv.weight"])
        classes = len(shapes["decode_head.conv_seg.weight"])
    except (KeyError, ValueError, TypeError) as exc:
        raise CheckpointError(f"{path}: is not a UPerNet on a Swin: {exc}") from exc
    if classes != 2:
        raise CheckpointError(f"{path}: has {classes} classes; of artifacts there are 2")
    swin = SwinConfig(
        embed_dim=width,
        patch_size=patch,
        depths=blocks,
        num_heads=[table[1] for table in tables],
        window_size=(isqrt(tables[0][0]) + 1) // 2,
        mlp_ratio=hidden / width,
        out_features=[*STAGES],
    )
    return UperNetConfig(
        backbone_config=swin,
        hidden_size=channels,
        num_labels=classes,
        pool_scales=POOLS,
        use_auxiliary_head=False,
    )


def stage_blocks(shapes: Mapping[str, torch.Tensor], stage: int) -> int:
    """Return the number of blocks of a stage."""
    prefix = f"backbone.stages.{stage}.blocks."
    return len({name.removeprefix(prefix).partition(".")[0] for name in shapes if name.startswith(prefix)})


def renamed(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """
    Return *tensors* by the names of transformers, in its order of numbers.

    MMSegmentation has query, key and value in one tensor, and orders the inputs of a downsampling by channel
    first, transformers by pixel first.
    """
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if UNUSED.fullmatch(name):
            continue
        if QKV in name:
            for letter, part in zip("qkv", tensor.chunk(3), strict=True):
                found[name_of(name.replace(QKV, f".attention.{letter}_proj."))] = part
        else:
            found[name_of(name)] = by_pixel(tensor) if ".downsample." in name else tensor
    return found


def name_of(name: str) -> str:
    """Return the name of transformers for a name in the file."""
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def by_pixel(tensor: torch.Tensor) -> torch.Tensor:
    """Reorder the last dimension: from (channels, rows, columns) to (columns, rows, channels)."""
    *rest, inputs = tensor.shape
    return tensor.reshape(*rest, inputs // 4, 2, 2).transpose(-1, -3).reshape(*rest, inputs)
