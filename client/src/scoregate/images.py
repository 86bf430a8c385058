"""
Encoding of pictures and videos of any type as files that the service reads.

Pixels are encoded as BMP, which is the fastest to write of the lossless formats that the service reads.  A
picture of 512 x 512 has 786 kB and takes a fifth of a millisecond; a PNG takes ten to fifty milliseconds.
What a BMP of RGB does not hold (an EXIF orientation, transparency, grey of 16 bits, an ICC profile) is sent
in a PNG that is not compressed, and the service treats it as that of a file.
https://learn.microsoft.com/windows/win32/gdi/bitmap-storage, https://www.w3.org/TR/png-3/
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol, TypeAlias, Union

from scoregate.errors import BadImageError, UrlNotAllowedError, reason_of
from scoregate.records import check_regular

CHANNELS = (1, 3, 4)
BATCH, VIDEO = 5, 4  # dimensions of arrays and tensors
URL = ("http://", "https://")
FILE = struct.Struct("<2sI4xI")
BITMAP = struct.Struct("<IiiHHIIiiII")
BMP_HEADER_BYTES = FILE.size + BITMAP.size
PNG = b"\x89PNG\r\n\x1a\n"
GREY16, RGB, RGBA = (16, 0, 2), (8, 2, 3), (8, 6, 4)  # bits, kind of colours, and bytes of a pixel
DEEP_MODES = ("I", "F")  # how Pillow's modes of more than 8 bits begin
OPAQUE = 255
EXIF = b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0%c\0\0\0\0\0\0"  # a directory of the orientation alone
ORIENTATION = 274
MAX_FILES = 64  # files of an item; the service has this limit
VIDEO_FRAMES = 16  # frames that are taken of a longer video; the service takes as many of a file


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


class HasFrames(Protocol):
    """What a video pipeline of diffusers returns, or `Frames`."""

    @property
    def frames(self) -> Any: ...


@dataclass(frozen=True, eq=False)
class Frames:
    """
    Several images as one: the frames of a film, or views of one scene, which have one score together.

    Attributes:
        frames: a list of images, or an array or a tensor with an axis of frames.

    Raises:
        TypeError: it is neither; a video file is an image by itself.
        ValueError: there is no image in it.
    """

    frames: Any

    def __post_init__(self) -> None:
        if not (is_list(self.frames) or dimensions(self.frames) in (VIDEO, BATCH)):
            raise TypeError(f"Frames takes a list of images, not {type(self.frames).__name__}")
        if not len(self.frames):
            raise ValueError("Frames needs an image at least, and is empty")


# Protocols, since a client needs none of the libraries.
ImageLike: TypeAlias = Union[
    str,
    "os.PathLike[str]",
    bytes,
    bytearray,
    memoryview,
    Readable,
    Pixels,
    PillowImage,
    HasFrames,
    BadImageError,
]


def is_url(image: Any) -> bool:
    """Return True if a picture is a URL."""
    return isinstance(image, str) and image.lower().startswith(URL)


def encoded(image: Any) -> bytes:
    """
    Return the bytes of a picture's file.

    * **Bytes, a path, or a file opened in binary mode**: the file as it is.
    * **A PIL image**: its RGB pixels as a BMP; with an EXIF orientation, transparency, 16 bits or an ICC
      profile as a PNG, so that `orient` and warnings are those of the file.
    * **A NumPy array or a tensor**, (H, W, C), (C, H, W) or (H, W), of uint8, or of floating point from 0 to
      1: its pixels as a BMP. If the first and the last axis could be the channels, an array's are last and a
      tensor's first. A fourth channel is alpha: it is ignored, with the warning `alpha_ignored` unless it is
      opaque.
    * **The output of a video pipeline of diffusers**, or `scoregate.Frames([...])` of any of these, of an
      array of several, or of the output's `frames[0]`: the frames of one scene; a plain list is an error. Of
      more than 64 frames of an output, 16 that are spread evenly, or more if the option `samples` is more.
    * **A `BadImageError`**, of a row of a data set whose picture cannot be read: it is raised.
    * **A URL**: itself, only with `Client(allow_urls=True)`; the service's operator must allow it too.

    Raises:
        BadImageError: the picture has none of these forms, or its file cannot be read.
        UrlNotAllowedError: a URL.
    """
    libraries = {kind.__module__.partition(".")[0] for kind in type(image).__mro__}
    if "PIL" in libraries:
        return of_pillow(image)
    if "torch" in libraries:
        return of_pixels(of_tensor(image), channels_first=True)
    if "numpy" in libraries:
        return of_pixels(image, channels_first=False)
    if isinstance(image, BadImageError):
        raise image
    data = of_bytes(image)
    if not data:
        raise BadImageError("there are no bytes; has the file been read before?")
    return data


def of_bytes(image: Any) -> bytes:
    """Return *image* if it is bytes, or the content of a path or an open file."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if is_url(image):
        raise UrlNotAllowedError(
            "a URL; with allow_urls=True the service fetches it, where its operator allows that"
        )
    if isinstance(image, (str, os.PathLike)):
        return of_path(image)
    if hasattr(image, "read"):
        return of_file(image)
    raise BadImageError(
        f"a {type(image).__name__} is no picture; give bytes, a path, an open file, a PIL image, an array"
        " or a tensor"
    )


def of_path(path: str | os.PathLike[str]) -> bytes:
    """Read a file."""
    try:
        check_regular(path)
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or reason_of(exc)
        raise BadImageError(f"cannot read {os.fspath(path)[:200]!r}: {reason}") from exc


def of_file(file: Any) -> bytes:
    """Return the rest of an open file."""
    try:
        data = file.read()
    except (OSError, ValueError) as exc:
        raise BadImageError(f"cannot read the file: {reason_of(exc)}") from exc
    if not isinstance(data, bytes):
        raise BadImageError("the file is open as text; open it in binary mode")
    return data


def of_pillow(image: Any) -> bytes:
    """Return the RGB pixels of a PIL image, with its orientation, transparency, depth and profile."""
    if not image.width or not image.height:
        raise BadImageError(f"the PIL image has no pixels: {image.width} x {image.height}")
    deep = image.mode.startswith(DEEP_MODES)
    try:
        image.load()  # loading turns a TIFF upright
        rgba = image.convert("RGBA") if may_be_transparent(image) and not deep else None
        rgb = (rgba or image).convert("RGB")
        chunks = unseen_by_pixels(image)
        if deep:  # values of 16 bits above 255 are clipped as in RGB
            return png(rgb.width, rgb.height, GREY16, in_16_bits(rgb.tobytes("raw", "R")), chunks)
        if rgba and rgba.getchannel("A").getextrema()[0] < OPAQUE:
            return png(rgb.width, rgb.height, RGBA, rgba.tobytes(), chunks)
        if chunks:
            return png(rgb.width, rgb.height, RGB, rgb.tobytes(), chunks)
        rows = rgb.tobytes("raw", "BGR", stride(rgb.width), -1)
    except (OSError, ValueError, SyntaxError) as exc:  # its file is read only now, and may be broken
        raise BadImageError(f"cannot read the PIL image: {reason_of(exc)}") from exc
    return bmp(rgb.width, rgb.height, rows)


def may_be_transparent(image: Any) -> bool:
    """Return True if a PIL image has a channel, a colour or a palette of transparency."""
    palette = image.palette.mode if image.mode == "P" and image.palette else ""
    return image.mode.lower().endswith("a") or "transparency" in image.info or palette.endswith("A")


def in_16_bits(values: bytes) -> bytes:
    """Return bytes as numbers of two bytes, the higher one first."""
    wide = bytearray(2 * len(values))
    wide[1::2] = values
    return bytes(wide)


def unseen_by_pixels(image: Any) -> bytes:
    """Return the chunks of a PNG with the EXIF orientation and the profile of a PIL image, if it has them."""
    orientation, profile = orientation_of(image), image.info.get("icc_profile")
    exif = chunk(b"eXIf", EXIF % orientation) if orientation > 1 else b""
    return exif + (chunk(b"iCCP", b"icc\0\0" + zlib.compress(profile)) if profile else b"")


def orientation_of(image: Any) -> int:
    """Return the EXIF orientation of a PIL image, from 1 to 8; XMP is ignored, as the service does."""
    import PIL.Image  # the caller has it

    exif = PIL.Image.Exif()
    with suppress(Exception):  # Pillow raises many kinds for broken data
        exif.load(image.info.get("exif") or b"")
    found = exif.get(ORIENTATION)
    return found if isinstance(found, int) and 1 <= found <= 8 else 1


def of_tensor(tensor: Any) -> Any:
    """Return a tensor's values as an array in main memory."""
    values = tensor.detach().cpu()
    return (values.float() if values.is_floating_point() else values).numpy()


def channels_last(pixels: Any, channels_first: bool) -> Any:
    """Return the array as (height, width, channels).  Raises `BadImageError` for another shape."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    elif pixels.ndim == 3:
        first, last = pixels.shape[0] in CHANNELS, pixels.shape[2] in CHANNELS
        if first and (channels_first or not last):
            pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim != 3 or pixels.shape[2] not in CHANNELS or not pixels.size:
        raise BadImageError(
            f"the shape {tuple(pixels.shape)} is no picture's; give (H, W, C), (C, H, W) or (H, W),"
            " with 1, 3 or 4 channels C"
        )
    return pixels


def of_pixels(pixels: Any, *, channels_first: bool) -> bytes:
    """
    Encode an array of uint8, or of floating point from 0 to 1, with channels first or last.

    Raises:
        BadImageError: the array has another shape or type, or a value out of range.
    """
    import numpy as np  # the caller has it, as it gave us an array

    planes = channels_last(pixels, channels_first)[::-1]  # a BMP begins with the lowest row
    height, width, channels = planes.shape
    if planes.dtype.kind == "f":
        least, most = planes.min(), planes.max()
        if not (least >= 0 and most <= 1):  # NaN is neither
            raise BadImageError(f"values from {least:.4g} to {most:.4g}; floating point must be from 0 to 1")
        planes = np.rint(planes.astype(np.float32, copy=False) * np.float32(255))
    elif planes.dtype != np.uint8:
        raise BadImageError(f"values of {planes.dtype}; give uint8, or floating point from 0 to 1")
    if channels == 4 and planes[..., 3].min() < OPAQUE:
        return png(width, height, RGBA, planes[::-1].astype(np.uint8).tobytes())
    rows = np.zeros((height, stride(width)), np.uint8)
    for place, channel in enumerate((2, 1, 0) if channels > 1 else (0, 0, 0)):
        rows[:, place : 3 * width : 3] = planes[..., channel]
    return bmp(width, height, rows.tobytes())


def stride(width: int) -> int:
    """Return bytes of a row of *width* pixels: three for each, padded to a multiple of four."""
    return (3 * width + 3) // 4 * 4


def bmp(width: int, height: int, rows: bytes) -> bytes:
    """Return the file of *rows*: blue, green, red; the lowest row first, each of `stride(width)` bytes."""
    file = FILE.pack(b"BM", BMP_HEADER_BYTES + len(rows), BMP_HEADER_BYTES)
    return file + BITMAP.pack(BITMAP.size, width, height, 1, 24, 0, len(rows), 0, 0, 0, 0) + rows


def png(width: int, height: int, form: tuple[int, int, int], pixels: bytes, chunks: bytes = b"") -> bytes:
    """Return a PNG file, not compressed, of *pixels* from the top, with other *chunks*."""
    bits, colours, size = form
    row = width * size
    rows = b"".join(b"\0" + pixels[at : at + row] for at in range(0, len(pixels), row))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0))
    return PNG + head + chunks + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG: its length, its kind, its data and their checksum."""
    return struct.pack(">I4s", len(data), kind) + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))


def smaller(file: bytes, most: int = 160) -> bytes:
    """Thin a file of `bmp` until no side has more than *most* pixels; return any other BMP unchanged."""
    size, width, height, _, bits, *_ = BITMAP.unpack_from(file, FILE.size)
    step = -(-max(width, height) // most)
    if (
        (size, bits) != (BITMAP.size, 24)
        or height < 0
        or step <= 1
        or len(file) != BMP_HEADER_BYTES + stride(width) * height
    ):
        return file
    narrow = -(-width // step)
    rows = []
    for top in range(0, height, step):
        start = BMP_HEADER_BYTES + top * stride(width)
        row = bytearray(stride(narrow))
        for channel in range(3):
            row[channel : 3 * narrow : 3] = file[start + channel : start + 3 * width : 3 * step]
        rows.append(bytes(row))
    return bmp(narrow, len(rows), b"".join(rows))


def check_one(image: Any, what: str = "image") -> None:
    """Raise `TypeError` for several images in the place of one: they would get one score together."""
    if is_list(image) or (dimensions(image) == VIDEO and len(image) > 1):
        raise TypeError(
            f"{what} is one image, not {len(image)}: score_many, rank and matrix take several; the frames of"
            " one scene are scoregate.Frames([...])"
        )


def digest(data: bytes, *related: bytes) -> str:
    """Return a hash that identifies the pictures of an item by the bytes of their files."""
    name = sha256(data).hexdigest()
    if related:
        name = sha256("".join([name, *(sha256(each).hexdigest() for each in related)]).encode()).hexdigest()
    return f"sha256:{name}"


def several(images: Iterable[Any], what: str = "images") -> list[Any]:
    """Return a list of *images*.  Raises `TypeError` for one image, or another single value."""
    if isinstance(images, str | bytes | os.PathLike) or not isinstance(images, Iterable):
        raise TypeError(f"{what} are a list, not {type(images).__name__}: one is a list of one")
    return list(images)


def sample_frames(frames: Any, count: int = VIDEO_FRAMES) -> list[Any]:
    """Return the middle frame of each of *count* equal parts, as the service does; all if there are fewer."""
    count = min(count, len(frames))
    return [frames[(2 * part + 1) * len(frames) // (2 * count)] for part in range(count)]


def frames_of(image: Any, taken: int = VIDEO_FRAMES) -> Any:
    """
    Return the frames of a video as a list, and anything else unchanged.

    A video is `Frames`, or what a pipeline of diffusers returns: PIL images in a list, or an array or a
    tensor with an axis of frames.  More than `MAX_FILES` are spread to *taken*.

    Raises:
        BadImageError: a batch of several videos.
    """
    video = image.frames if hasattr(image, "frames") else image
    if dimensions(video) == BATCH or (is_list(video) and any(map(is_video, video))):
        if len(video) != 1:
            raise BadImageError(f"a batch of {len(video)} videos; give one of them, such as frames[0]")
        video = video[0]
    if not is_video(video):
        return image
    return list(video) if len(video) <= MAX_FILES else sample_frames(video, taken)


def is_video(value: Any) -> bool:
    """Return True for a list of pictures, and for an array or a tensor with an axis of frames."""
    return is_list(value) or dimensions(value) == VIDEO


def dimensions(value: Any) -> int:
    """Return the number of axes of an array or a tensor; 0 for anything else."""
    number: int = getattr(value, "ndim", 0)
    return number


def is_list(value: Any) -> bool:
    """Return True for a sequence of pictures, which is no array."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))
