"""
PAL4VST (Zhang et al. 2023, "Perceptual Artifacts Localization for Image Synthesis Tasks"): a UPerNet on a
Swin decides for each pixel whether it belongs to an artifact.

The network is that of transformers, and the pixels are those of the released code: the picture is stretched
to a square of 512 pixels, bicubic.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np
import PIL.Image
import torch
from transformers import SwinConfig, UperNetConfig, UperNetForSemanticSegmentation

from models.checkpoints.info import info_of
from models.checkpoints.locate import model_arguments
from models.checkpoints.weights import DTYPES, mismatch, read_file, translated
from models.core.calls import RewardCall
from models.core.contract import NOT_FINITE, CheckpointError, ModelError, Prepared
from models.core.examples import grey
from models.core.outcomes import Reward
from models.core.settings import LocalSettings
from models.families.artifact import FAMILY
from models.families.inputs import upload
from models.images.pixels import Preprocessor

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
STAGES = ("stage1", "stage2", "stage3", "stage4")
POOL_SIDES = [1, 2, 3, 6]  # the sides of the pyramid's grids
QKV = ".attn.w_msa.qkv."
# Training has an auxiliary head and counts, and one buffer is computed.
UNUSED_TENSORS = re.compile(r"auxiliary_head\..*|.*\.(relative_position_index|num_batches_tracked)")
# The names in the file to those of transformers; all others are equal.
TENSOR_NAMES = (
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
        pool_scales=POOL_SIDES,
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
        if UNUSED_TENSORS.fullmatch(name):
            continue
        if QKV in name:
            for letter, part in zip("qkv", tensor.chunk(3), strict=True):
                found[translated(name.replace(QKV, f".attention.{letter}_proj."), TENSOR_NAMES)] = part
        else:
            found[translated(name, TENSOR_NAMES)] = by_pixel(tensor) if ".downsample." in name else tensor
    return found


def by_pixel(tensor: torch.Tensor) -> torch.Tensor:
    """Reorder the last dimension: from (channels, rows, columns) to (columns, rows, channels)."""
    *rest, inputs = tensor.shape
    return tensor.reshape(*rest, inputs // 4, 2, 2).transpose(-1, -3).reshape(*rest, inputs)


SIDE = 512
COST_TOKENS = 1024  # tokens of a picture: patches of 16 by 16 pixels
ARTIFACT_CLASS = 1  # the class; 0 is the rest
# Transformers' network has a layer that no output uses, and counts of training.
UNTRAINED_TENSORS = re.compile(r"backbone\.swin\.layernorm\..*|.*\.num_batches_tracked")


@dataclass(frozen=True, slots=True)
class Stretched(Preprocessor):
    """The pixels of a square, without the aspect ratio; normalised by ImageNet's colours."""

    mean: tuple[float, ...] = (123.675 / 255, 116.28 / 255, 103.53 / 255)
    std: tuple[float, ...] = (58.395 / 255, 57.12 / 255, 57.375 / 255)

    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return the stretched picture: (3, 512, 512), uint8."""
        square = rgb.resize((SIDE, SIDE), PIL.Image.Resampling.BICUBIC)
        return torch.from_numpy(np.array(square).transpose(2, 0, 1).copy())


class Pal4Vst:
    """A loaded PAL4VST.  Args as in `ModelArguments`; raises `CheckpointError`."""

    def __init__(self, directory: Path, *, dtype: str, device: str, id: str = "", revision: str = "") -> None:
        [path] = weights_files(directory)
        self._network = load_network(path).to(device, DTYPES[dtype]).eval()
        self._device, self._dtype, self._pixels = torch.device(device), DTYPES[dtype], Stretched()
        self.info = info_of(FAMILY, directory, (), dtype, device, id, revision, weights=[path])

    def prepare(self, call: RewardCall) -> Prepared:
        """Stretch the picture; a prompt is not used."""
        return Prepared(COST_TOKENS, call.image.once(self._pixels, self._pixels.resized))

    @torch.inference_mode()
    def score(self, batch: Sequence[Prepared]) -> list[Reward | ModelError]:
        """Return the artifact ratio of each picture: the share of pixels of the class "artifact"."""
        pixels = upload([prepared.data for prepared in batch], self._device)
        logits = self._network(self._pixels.normalised(pixels).to(self._dtype)).logits.float()
        ratios = (logits.argmax(1) == ARTIFACT_CLASS).flatten(1).double().mean(1)
        finite = logits.flatten(1).isfinite().all(1)
        return [
            Reward((ratio,)) if right else ModelError(NOT_FINITE)
            for ratio, right in zip(ratios.tolist(), finite.tolist(), strict=True)
        ]

    def example(self) -> RewardCall:
        return RewardCall(grey(SIDE, SIDE))


def load_network(path: Path) -> UperNetForSemanticSegmentation:
    """Load the network of a file with every weight.  Raises `CheckpointError`."""
    held = read_file(path, "cpu")
    config = config_of(path, held)
    tensors = renamed(held)
    network = UperNetForSemanticSegmentation(config)
    expected = {name: t for name, t in network.state_dict().items() if not UNTRAINED_TENSORS.fullmatch(name)}
    if wrong := mismatch(tensors, expected):
        raise CheckpointError(f"{path}: the weights don't fit: {wrong}")
    network.load_state_dict(tensors, strict=False)  # all but the unused are there
    return network


def from_settings(settings: LocalSettings) -> Pal4Vst:
    """Load the model of a table.  Raises `CheckpointError`."""
    return Pal4Vst(**model_arguments(settings))
