"""Encoding of pictures of any type as files that the service reads."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, Union

from scoregate.bmp import bmp, stride
from scoregate.errors import BadImage, UrlNotAllowed, reason_of


class Readable(Protocol):
    """A file that is open in binary mode."""

    def read(self) -> bytes: ...


class Pixels(Protocol):
    """An array or a tensor."""

    @property
    def ndim(self) -> int: ...


class PillowImage(Protocol):
    """An image of PIL."""

    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...


class Frames(Protocol):
    """What a video pipeline of diffusers returns."""

    @property
    def frames(self) -> Any: ...


# Protocols, since a client needs none of the libraries; a sequence is the frames of one scene.
Picture: TypeAlias = Union[
    str,
    "os.PathLike[str]",
    bytes,
    bytearray,
    memoryview,
    Readable,
    Pixels,
    PillowImage,
    Frames,
    Sequence["Picture"],
]
CHANNELS = (1, 3, 4)
URL = ("http://", "https://")


def is_url(image: Any) -> bool:
    """Return True if a picture is a URL."""
    return isinstance(image, str) and image.lower().startswith(URL)


def encoded(image: Any) -> bytes:
    """
    Return the bytes of a picture's file.

    Bytes, paths and open files are sent unchanged.  Pixels are encoded without loss: `convert("RGB")` of a
    PIL image; the 1, 3 or 4 channels of an array or a tensor, without the fourth.  If both ends of a shape
    could be channels, they are last in an array and first in a tensor.

    Raises:
        BadImage: a picture in none of these forms, or a file that cannot be read.
        UrlNotAllowed: a URL.
    """
    libraries = {kind.__module__.partition(".")[0] for kind in type(image).__mro__}
    if "PIL" in libraries:
        return of_pillow(image)
    if "torch" in libraries:
        return of_pixels(of_tensor(image), channels_first=True)
    if "numpy" in libraries:
        return of_pixels(image, channels_first=False)
    data = of_bytes(image)
    if not data:
        raise BadImage("there are no bytes; has the file been read before?")
    return data


def of_bytes(image: Any) -> bytes:
    """Return bytes, or what a path or an open file holds."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if is_url(image):
        raise UrlNotAllowed(
            "a URL; with allow_urls=True the service fetches it, where its operator allows that"
        )
    if isinstance(image, (str, os.PathLike)):
        return of_path(image)
    if hasattr(image, "read"):
        return of_file(image)
    raise BadImage(
        f"a {type(image).__name__} is no picture; give bytes, a path, an open file, a PIL image, an array"
        " or a tensor"
    )


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise `OSError` for a device or a pipe, which may never end; a path without a file passes."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def of_path(path: str | os.PathLike[str]) -> bytes:
    """Read a file."""
    try:
        check_regular(path)
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or reason_of(exc)
        raise BadImage(f"cannot read {os.fspath(path)[:200]!r}: {reason}") from exc


def of_file(file: Any) -> bytes:
    """Return the rest of an open file."""
    try:
        data = file.read()
    except (OSError, ValueError) as exc:
        raise BadImage(f"cannot read the file: {reason_of(exc)}") from exc
    if not isinstance(data, bytes):
        raise BadImage("the file is open as text; open it in binary mode")
    return data


def of_pillow(image: Any) -> bytes:
    """Return the RGB pixels of a PIL image."""
    if not image.width or not image.height:
        raise BadImage(f"the PIL image has no pixels: {image.width} x {image.height}")
    try:
        rgb = image.convert("RGB")
        rows = rgb.tobytes("raw", "BGR", stride(rgb.width), -1)
    except (OSError, ValueError, SyntaxError) as exc:  # its file is read only now, and may be broken
        raise BadImage(f"cannot read the PIL image: {reason_of(exc)}") from exc
    return bmp(rgb.width, rgb.height, rows)


def of_tensor(tensor: Any) -> Any:
    """Return a tensor's values as an array in main memory."""
    values = tensor.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()


def channels_last(pixels: Any, channels_first: bool) -> Any:
    """Return the array as (height, width, channels).  Raises `BadImage` for another shape."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    elif pixels.ndim == 3:
        first, last = pixels.shape[0] in CHANNELS, pixels.shape[2] in CHANNELS
        if first and (channels_first or not last):
            pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or pixels.shape[2] not in CHANNELS or not pixels.size:
        raise BadImage(
            f"the shape {tuple(pixels.shape)} is no picture's; give (H, W, C), (C, H, W) or (H, W),"
            " with 1, 3 or 4 channels C"
        )
    return pixels


def of_pixels(pixels: Any, *, channels_first: bool) -> bytes:
    """
    Return an array of uint8, or of floating point from 0 to 1, in either order of its axes.

    Raises:
        BadImage: another shape or type, or a value out of range.
    """
    import numpy as np  # the caller has it, as it gave us an array

    planes = channels_last(pixels, channels_first)[::-1]  # a BMP begins with the lowest row
    height, width, channels = planes.shape
    if planes.dtype.kind == "f":
        least, most = planes.min(), planes.max()
        if not (least >= 0 and most <= 1):  # NaN is neither
            raise BadImage(f"values from {least:.4g} to {most:.4g}; floating point must be from 0 to 1")
        planes = np.rint(planes.astype(np.float32, copy=False) * np.float32(255))
    elif planes.dtype != np.uint8:
        raise BadImage(f"values of {planes.dtype}; give uint8, or floating point from 0 to 1")
    rows = np.zeros((height, stride(width)), np.uint8)
    for place, channel in enumerate((2, 1, 0) if channels > 1 else (0, 0, 0)):
        rows[:, place : 3 * width : 3] = planes[..., channel]
    return bmp(width, height, rows.tobytes())
