"""The configuration of CLIP-FlanT5's vision tower, and its image processor."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import CLIPVisionConfig

from models.checkpoints.configuration import built, check_fixed, check_size, read_json
from models.core.contract import CheckpointError
from models.images.pixels import CLIP_MEAN, CLIP_STD, Pixels

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
FIXED_STEPS = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "resample": 3,  # bicubic
    "use_square_size": False,
}


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


def read_pixels(path: Path, image_size: int, pad: bool) -> Pixels:
    """
    Read the image processor: the CLIP processor's steps, with the given mean and deviation.

    Raises:
        CheckpointError: the processor has other steps.
    """
    if not path.is_file():
        return Pixels(image_size, pad=pad)
    steps = read_json(path)
    kind = steps.get("image_processor_type", steps.get("feature_extractor_type", "CLIP"))
    if not str(kind).startswith("CLIP"):
        raise CheckpointError(f"{path}: {kind!r} is not CLIP's image processor")
    check_fixed(path, steps, FIXED_STEPS)
    factor = steps.get("rescale_factor", 1 / 255)
    if not isinstance(factor, float) or not math.isclose(factor, 1 / 255, rel_tol=1e-6):
        raise CheckpointError(f"{path}: rescale_factor is {factor!r}; only 1/255 is implemented")
    if not sized(steps, image_size, pad):
        named = ", ".join(f"{name} {steps.get(name)!r}" for name in ("size", "crop_size", "do_center_crop"))
        raise CheckpointError(f"{path}: {named} does not give the tower's {image_size}x{image_size} pixels")
    mean, std = (triple(path, steps, name) for name in ("image_mean", "image_std"))
    return Pixels(image_size, mean=mean, std=std, pad=pad)


def sized(steps: Mapping[str, Any], side: int, pad: bool) -> bool:
    """Return True if resizing and cropping result in the tower's square."""
    square = {"height": side, "width": side}
    size, crop = steps.get("size", 224), steps.get("crop_size", 224)
    # A padded picture is a square already, so all forms of the size are equivalent.
    resized = size in (side, {"shortest_edge": side}) or (pad and size == square)
    return resized and (crop in (side, square) if steps.get("do_center_crop", True) else pad)


def triple(path: Path, steps: Mapping[str, Any], name: str) -> tuple[float, ...]:
    """Read three numbers, one for each colour.  Raises `CheckpointError`."""
    default = CLIP_MEAN if name == "image_mean" else CLIP_STD
    values = steps.get(name, default)
    sound = isinstance(values, list | tuple) and all(isinstance(v, int | float) for v in values)
    if not sound or len(values) != 3 or (name == "image_std" and 0 in values):
        raise CheckpointError(f"{path}: {name} is {values!r}, not three numbers")
    return tuple(map(float, values))
