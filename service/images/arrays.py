"""
Pixels in files of NumPy (`.npy`), as pictures that the loader reads.

Only arrays of bytes are read.  The header is parsed within a limit, and compared with the number of bytes
that follow.  Nothing is unpickled.  https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

import struct
from io import BytesIO
from typing import Any

import numpy as np
from numpy.lib import format as npy

from models.images.formats.mp4 import is_mp4
from service.core.errors import Invalid
from service.images.frames import sampled

MAX_HEADER = 1024  # bytes; NumPy writes 118 for four dimensions
HEADER_BYTES = 256  # bytes before the pixels that NumPy writes, the header among them
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
FILE, BITMAP = struct.Struct("<2sIxxxxI"), struct.Struct("<IiiHHIIiiII")  # the headers of a BMP

SHAPES = {  # the number of dimensions, that of the channels, and their names
    "image": (4, 3, "(pictures, height, width, 3)"),
    "video": (5, 1, "(videos, 3, frames, height, width)"),
}

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def pixels_of(file: memoryview) -> Bytes:
    """
    Return the array of a `.npy` file of uint8, over the same memory.

    Raises:
        Invalid: another file, another type of values, or another number of them than the header has.
    """
    head = BytesIO(file[: MAX_HEADER + HEADER_BYTES])
    try:
        shape, by_column, kind = READERS[npy.read_magic(head)](head, max_header_size=MAX_HEADER)
    except (ValueError, KeyError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Invalid("the bytes after the JSON are no .npy file that NumPy's save wrote") from None
    if kind != np.uint8:
        raise Invalid(f"the array has values of the type {str(kind)[:40]}; send pixels as uint8")
    values, size = len(file) - head.tell(), 1
    for side in shape:  # numbers of Python, which do not overflow
        size *= side
    if size != values or not values or any(isinstance(side, bool) or side < 1 for side in shape):
        raise Invalid(f"the header has the shape {str(shape)[:80]}, and {values} bytes follow it")
    flat = np.frombuffer(file, np.uint8, offset=head.tell())
    return flat.reshape(shape, order="F" if by_column else "C")


def bmp(pixels: Bytes) -> bytes:
    """Return red, green and blue of shape (height, width, 3) as a BMP, which is not compressed."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, (3 * width + 3) // 4 * 4), np.uint8)  # rows fill multiples of four bytes
    rows[:, : 3 * width] = pixels[::-1, :, ::-1].reshape(height, 3 * width)  # the lowest row comes first
    before = FILE.size + BITMAP.size
    head = FILE.pack(b"BM", before + rows.nbytes, before)
    return head + BITMAP.pack(BITMAP.size, width, height, 1, 24, 0, rows.nbytes, 0, 0, 0, 0) + rows.tobytes()


def frames_of(kind: str, file: memoryview, count: int, most: int) -> list[list[bytes]]:
    """
    Return the pictures or videos of a file as lists of files, one or at most so many frames for each.

    Args:
        kind: "image" for pixels of shape (pictures, height, width, 3); "video" for those of shape (videos, 3,
            frames, height, width), of which frames spread evenly are taken, or for an MP4, which is returned.
        count: of pictures or videos that there must be.
        most: frames of a video.

    Raises:
        Invalid: another kind, shape or number, or as `pixels_of`.
    """
    if kind not in ("image", "video"):
        raise Invalid(f"{kind[:40]!r} needs the decoder of its trainer; send image or video")
    if kind == "video" and is_mp4(bytes(file[:64])):
        check_number(1, count)
        return [[bytes(file)]]
    pixels = pixels_of(file)
    sides, channels, expected = SHAPES[kind]
    if pixels.ndim != sides or pixels.shape[channels] != 3:
        raise Invalid(f"the array has the shape {pixels.shape}; send {expected}")
    check_number(len(pixels), count)
    if kind == "image":
        return [[bmp(each)] for each in pixels]
    chosen = sampled(range(pixels.shape[2]), most)
    return [[bmp(each[:, n].transpose(1, 2, 0)) for n in chosen] for each in pixels]


def check_number(found: int, count: int) -> None:
    """Raise `Invalid` for another number than *count*: an array may have millions of tiny pictures."""
    if found != count:
        raise Invalid(f"there are {found} pictures or videos; {count} are needed, one for each prompt")
