"""The configuration of CLIP-FlanT5's vision tower, and its image processor."""

from pathlib import Path
from typing import Any

from transformers import CLIPVisionConfig

from models.checkpoints.configuration import built, check_fixed, check_size, read_json
from models.core.contract import CheckpointError
from models.families.clip_processor import read_steps
from models.images.pixels import Pixels

# The tower of every published checkpoint, which holds its weights, but not these constants.
KNOWN_TOWER = "clip-vit-large-patch14-336"
VIT_L_14_336 = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projection_dim": 768,
    "hidden_act": "quick_gelu",
}
FIXED_TOWER = {"model_type": "clip_vision_model", "num_channels": 3}


def read_tower(path: Path, named: str | None) -> dict[str, Any]:
    """Read the vision tower's configuration, by default the published one.  Raises `CheckpointError`."""
    if path.is_file():
        given = read_json(path)
        given = given.get("vision_config", given)
    elif named is None or Path(str(named)).name == KNOWN_TOWER:
        given = VIT_L_14_336
    else:
        raise CheckpointError(
            f"{path}: missing; only {KNOWN_TOWER} needs no such file, and mm_vision_tower is {named!r}"
        )
    check_fixed(path, given, FIXED_TOWER)
    tower: dict[str, Any] = built(path, CLIPVisionConfig, given).to_dict()
    for name in ("hidden_size", "image_size", "patch_size", "num_hidden_layers"):
        check_size(path, tower, name)
    return tower


def read_pixels(directory: Path, image_size: int, pad: bool) -> Pixels:
    """
    Read the image processor: the CLIP processor's steps, with the given mean and deviation.

    Raises:
        CheckpointError: the processor has other steps.
    """
    steps = read_steps(directory, image_size, square=pad)
    if steps.squash and not pad:
        raise CheckpointError(f"{directory}: the image processor squashes pictures, which is not implemented")
    return Pixels(image_size, mean=steps.mean, std=steps.std, pad=pad)
