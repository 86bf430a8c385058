"""The image processors of transformers."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import torch

from models.checkpoints.files import PREPROCESSOR, PROCESSOR, check_fixed, read_json
from models.checkpoints.pretrained import load_processor
from models.core.contract import CheckpointError
from models.core.messages import in_short
from models.images.pixels import CLIP_MEAN, CLIP_STD, looked_up

CLIP_PROCESSOR = re.compile(r"CLIP(ImageProcessor|FeatureExtractor)(Fast|Pil)?")
TYPE_KEYS = ("image_processor_type", "feature_extractor_type")  # the names of the type, new and old
DEFAULT_EDGE = 224  # the processor's own default
FIXED_SETTINGS = {
    "do_resize": True,
    "do_rescale": True,
    "do_normalize": True,
    "resample": 3,  # bicubic
    "use_square_size": False,
    "do_pad": False,
}
READ_SETTINGS = {
    *TYPE_KEYS,
    *FIXED_SETTINGS,
    "rescale_factor",
    "size",
    "crop_size",
    "do_center_crop",
    "image_mean",
    "image_std",
}
# They change no pixel of an RGB picture.
SETTINGS_WITHOUT_EFFECT = {
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
        squash: whether both edges are resized to the square; else the shorter one is, and the centre cropped.
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
    kind = str(next((given[name] for name in TYPE_KEYS if name in given), "CLIPImageProcessor"))
    if not CLIP_PROCESSOR.fullmatch(kind):
        raise CheckpointError(f"{path}: {kind!r} is not CLIP's image processor")
    if unknown := sorted({*given} - READ_SETTINGS - SETTINGS_WITHOUT_EFFECT):
        raise CheckpointError(f"{path}: {', '.join(unknown)}: not implemented for CLIP's image processor")
    check_fixed(path, given, FIXED_SETTINGS)
    factor = given.get("rescale_factor", 1 / 255)
    if not isinstance(factor, float) or not math.isclose(factor, 1 / 255, rel_tol=1e-6):
        raise CheckpointError(f"{path}: rescale_factor is {factor!r}; only 1/255 is implemented")
    resized, cropped = (
        edges(given.get("size", DEFAULT_EDGE)),
        edges(given.get("crop_size", DEFAULT_EDGE), square=True),
    )
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


WITHOUT_RESIZE = {"do_resize": False, "do_center_crop": False}
WITHOUT_RESCALE = {"do_rescale": False, "do_normalize": False}
PIXELS = "pixel_values"


class ProcessorPixels:
    """
    The pixels of an image processor of transformers, in the two steps of a `Preprocessor`.  Thread-safe.

    A processor that is not a resize to 8 bits, followed by one number for each byte of each colour, does both
    steps in the first one: that of SigLIP 2 returns patches, that of ALIGN normalises twice.

    Args:
        directory: of the checkpoint, for errors.

    Raises:
        CheckpointError: the processor fails.
    """

    def __init__(self, processor: Any, directory: Path) -> None:
        self._processor = processor
        try:
            self._table = table_of(self._made)
        except Exception as exc:  # invalid values of the file fail only here
            raise CheckpointError(f"{directory}: its image processor fails: {in_short(exc)}") from exc

    def inputs(self, rgb: PIL.Image.Image) -> Mapping[str, torch.Tensor]:
        """Return the network's inputs by name for one picture; pixels are resized, not yet normalised."""
        return self._made(rgb, **({} if self._table is None else WITHOUT_RESCALE))

    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return the pixels of the network's input: (3, height, width), uint8 or, if normalised, float32."""
        return self.inputs(rgb)[PIXELS]

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the processor's numbers of pixels (..., 3, height, width) on their device: float32."""
        return pixels if self._table is None else looked_up(pixels, self._table)

    def _made(self, rgb: PIL.Image.Image, **options: bool) -> Mapping[str, torch.Tensor]:
        made = self._processor(images=rgb, return_tensors="pt", **options)
        return {name: rows[0] for name, rows in made.items()}


def table_of(made: Callable[..., Mapping[str, torch.Tensor]]) -> np.ndarray | None:
    """
    Return a processor's number of each byte of each colour: (3, 256), float32.

    Returns:
        None if such a table does not give the processor's own numbers of a random picture, to the bit.

    Args:
        made: the processor's outputs for one picture, with options in place of its own.
    """
    every = np.arange(256, dtype=np.uint8).reshape(16, 16, 1).repeat(3, 2)
    some = np.random.default_rng(0).integers(256, size=(48, 64, 3), dtype=np.uint8)
    image = PIL.Image.fromarray(some)
    whole = made(image)[PIXELS]
    try:
        numbers = made(PIL.Image.fromarray(every), **WITHOUT_RESIZE)[PIXELS]
        pixels = made(image, **WITHOUT_RESCALE)[PIXELS]
    except Exception:  # the processor has other steps, which do not take such pictures
        return None
    if numbers.shape != (3, 16, 16) or numbers.dtype != torch.float32 or pixels.dtype != torch.uint8:
        return None
    table: np.ndarray = numbers.flatten(1).numpy()
    return table if torch.equal(looked_up(pixels, table), whole) else None


def blip_pixels(directory: Path, side: int) -> ProcessorPixels:
    """
    Return the pixels of a BLIP for a vision tower with pictures of *side* pixels.

    Raises:
        CheckpointError: its image processor is missing, fails, or returns pictures of another size.
    """
    from transformers import BlipImageProcessorPil  # takes seconds, and models of other families need none

    pixels = ProcessorPixels(load_processor(BlipImageProcessorPil, directory), directory)
    shape = tuple(pixels.resized(PIL.Image.new("RGB", (64, 48))).shape)
    if shape != (3, side, side):
        raise CheckpointError(f"{directory}: pictures have the shape {shape}, not that of the network")
    return pixels
