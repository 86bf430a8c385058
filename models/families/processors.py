"""The image processors of CLIPs and BLIPs of transformers."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import PIL.Image
import torch
from transformers import BlipImageProcessorPil

from models.checkpoints.files import PREPROCESSOR, PROCESSOR, check_fixed, read_json
from models.checkpoints.pretrained import load_processor
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.images.pixels import CLIP_MEAN, CLIP_STD

KIND = re.compile(r"CLIP(ImageProcessor|FeatureExtractor)(Fast|Pil)?")
KINDS = ("image_processor_type", "feature_extractor_type")  # the names of the type, new and old
EDGE = 224  # the processor's own default
FIXED = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "resample": 3,  # bicubic
    "use_square_size": False,
    "do_pad": False,
}
READ = {*KINDS, *FIXED, "rescale_factor", "size", "crop_size", "do_center_crop", "image_mean", "image_std"}
# They change no pixel of an RGB picture.
WITHOUT_EFFECT = {
    "_valid_processor_keys",
    "data_format",
    "device",
    "disable_grouping",
    "do_convert_rgb",
    "input_data_format",
    "processor_class",
    "return_tensors",
}


@dataclass(frozen=True, slots=True)
class Steps:
    """
    The steps of a processor: resize, crop, and normalise by *mean* and *std*.

    Attributes:
        squash: resize to the square at once, else the shorter edge, and crop the centre.
    """

    squash: bool = False
    mean: tuple[float, ...] = CLIP_MEAN
    std: tuple[float, ...] = CLIP_STD


def read_steps(directory: Path, side: int, *, square: bool = False) -> Steps:
    """
    Read the processor in *directory*, from the file that transformers reads; CLIP's own if there is none.

    Args:
        side: of the network's pictures.
        square: pictures are squares before, so that neither a crop nor a squash changes their content.

    Raises:
        CheckpointError: the file is broken, or its steps do not result in *side*, or are not implemented.
    """
    path, given = read_processor(directory)
    if path is None:
        return Steps()
    given = {name: value for name, value in given.items() if value is not None}
    kind = str(next((given[name] for name in KINDS if name in given), "CLIPImageProcessor"))
    if not KIND.fullmatch(kind):
        raise CheckpointError(f"{path}: {kind!r} is not CLIP's image processor")
    if unknown := sorted({*given} - READ - WITHOUT_EFFECT):
        raise CheckpointError(f"{path}: {', '.join(unknown)}: not implemented for CLIP's image processor")
    check_fixed(path, given, FIXED)
    factor = given.get("rescale_factor", 1 / 255)
    if not isinstance(factor, float) or not math.isclose(factor, 1 / 255, rel_tol=1e-6):
        raise CheckpointError(f"{path}: rescale_factor is {factor!r}; only 1/255 is implemented")
    resized, cropped = edges(given.get("size", EDGE)), edges(given.get("crop_size", EDGE), square=True)
    whole = {"height": side, "width": side}
    crops = given.get("do_center_crop", True)
    if resized not in (whole, {"shortest_edge": side}) or (
        cropped != whole if crops else resized != whole and not square
    ):
        named = ", ".join(f"{name} {given.get(name)!r}" for name in ("size", "crop_size", "do_center_crop"))
        raise CheckpointError(f"{path}: {named} does not give the network's {side}x{side} pixels")
    mean, std = (triple(path, given, name) for name in ("image_mean", "image_std"))
    return Steps(resized == whole, mean, std)


def read_processor(directory: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """Return the file of the image processor, and its content; None if there is none."""
    path = directory / PROCESSOR
    if path.is_file() and "image_processor" in (whole := read_json(path)):
        inner = whole["image_processor"]
        if not isinstance(inner, dict):
            raise CheckpointError(f"{path}: image_processor is not a JSON object")
        return path, inner
    path = directory / PREPROCESSOR
    return (path, read_json(path)) if path.is_file() else (None, {})


def edges(size: Any, *, square: bool = False) -> Any:
    """Return a size as transformers reads it: a number is the shortest edge, or that of a *square*."""
    if isinstance(size, list) and len(size) == 2:
        return {"height": size[0], "width": size[1]}
    if isinstance(size, dict):
        return {name: edge for name, edge in size.items() if edge is not None}
    return {"height": size, "width": size} if square else {"shortest_edge": size}


def triple(path: Path, steps: Mapping[str, Any], name: str) -> tuple[float, ...]:
    """Read three numbers, one for each colour.  Raises `CheckpointError`."""
    default = CLIP_MEAN if name == "image_mean" else CLIP_STD
    values = steps.get(name, default)
    sound = isinstance(values, list | tuple) and all(isinstance(v, int | float) for v in values)
    if not sound or len(values) != 3 or (name == "image_std" and 0 in values):
        raise CheckpointError(f"{path}: {name} is {values!r}, not three numbers")
    return tuple(map(float, values))


class BlipPixels:
    """
    The image processor of a checkpoint, for a vision tower with pictures of *side* pixels.  Thread-safe.

    Raises:
        CheckpointError: it is missing, fails, or returns pictures of another size.
    """

    def __init__(self, directory: Path, side: int) -> None:
        self._processor = load_processor(BlipImageProcessorPil, directory)
        try:
            shape = tuple(self(PIL.Image.new("RGB", (64, 48))).shape)
        except Exception as exc:  # invalid values of the file fail only here
            raise CheckpointError(f"{directory}: its image processor fails: {in_short(exc)}") from exc
        if shape != (3, side, side):
            raise CheckpointError(f"{directory}: pictures have the shape {shape}, not that of the network")

    def __call__(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return normalised pixels (3, side, side)."""
        pixels: torch.Tensor = self._processor(images=rgb, return_tensors="pt")["pixel_values"][0]
        return pixels
