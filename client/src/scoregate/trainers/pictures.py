"""Batches of pictures in the formats of trainers, split into single pictures."""

from __future__ import annotations

import sys
from math import isfinite
from typing import Any

from scoregate.errors import BadImage

LIBRARIES = ("numpy", "torch")
CHANNELS = (1, 3, 4)
SLACK = 0.05  # tolerated beyond [0, 1] for rounding; a picture in [-1, 1] exceeds it


def pictures(images: Any, *, channels: int | None = None) -> list[Any]:
    """
    Return one picture for each of *images*, in order, as the client takes them.

    Args:
        images: a tensor or an array of four dimensions, uint8 or floats in [0, 1], or a sequence of
            pictures: tensors, arrays, PIL images, bytes, or lists of frames.
        channels: the axis of the colours in a batch; None finds it, and prefers NCHW for tensors and
            NHWC for arrays.

    Returns:
        uint8 arrays of HWC for tensors and arrays, otherwise the given objects.  A picture with NaN or
        an infinity is replaced by a `BadImage`.

    Raises:
        ValueError: the shape is not valid, or floats are clearly outside [0, 1].
    """
    if not is_array(images):
        return [picture(one) for one in images]
    if images.ndim != 4:
        raise ValueError(f"a batch of pictures has four dimensions, not {images.ndim}")
    axis = colour_axis(images) if channels is None else channels
    if images.shape[axis] not in CHANNELS:
        raise ValueError(f"no axis of {tuple(images.shape)} holds 1, 3 or 4 channels where they should be")
    if axis != 3:
        library = sys.modules[library_of(images)]
        images = library.moveaxis(images, axis, -1)
    return in_bytes(images)


def picture(image: Any) -> Any:
    """Return one picture of a sequence; an array may lack the axis of its colours, or be a batch of one."""
    if not is_array(image):
        return image
    if image.ndim == 4 and len(image) == 1:
        return pictures(image)[0]
    return pictures(image[None, :, :, None] if image.ndim == 2 else image[None])[0]


def colour_axis(images: Any) -> int:
    """Return the most likely axis of the colours of a batch."""
    likely = (1, 3) if library_of(images) == "torch" else (3, 1)
    return next((axis for axis in likely if images.shape[axis] in CHANNELS), likely[0])


def in_bytes(images: Any) -> list[Any]:
    """Convert NHWC of bytes, or of floats in [0, 1], to arrays of bytes; round floats as flow_grpo does."""
    library = sys.modules[library_of(images)]
    images = images.detach() if hasattr(images, "detach") else images
    if images.dtype == library.uint8 or not len(images):
        return on_host(images)
    if "float" not in str(images.dtype):
        raise ValueError(f"pictures are uint8 or floats in [0, 1], not {images.dtype}")
    images = library.asarray(images, dtype=library.float32)
    lowest, highest = float(images.min()), float(images.max())
    if not isfinite(lowest + highest):  # NaN is the least and the greatest
        return without_broken(images, library)
    if lowest < -SLACK or highest > 1 + SLACK:
        raise ValueError(f"floats are in [0, 1], not from {lowest:.3g} to {highest:.3g}")
    scaled = (images if lowest >= 0 and highest <= 1 else images.clip(0, 1)) * 255
    return on_host(library.asarray(scaled.round(), dtype=library.uint8))


def without_broken(images: Any, library: Any) -> list[Any]:
    """Return `in_bytes` of the finite pictures, and a `BadImage` for each of the others."""
    finite = library.isfinite(images).reshape(len(images), -1).all(1).tolist()
    good = iter(in_bytes(images[finite]))
    return [next(good) if here else BadImage("the picture holds NaN or an infinity") for here in finite]


def on_host(images: Any) -> list[Any]:
    """Return arrays of HWC in host memory."""
    return list(images.cpu().numpy() if library_of(images) == "torch" else images)


def is_array(value: Any) -> bool:
    """Return True if it is a tensor or an array."""
    return library_of(value) != "" and hasattr(value, "ndim")


def library_of(value: Any) -> str:
    """Return the first package of *value*'s classes that has arrays, or ""; nothing is imported."""
    packages = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return next((package for package in packages if package in LIBRARIES), "")
