"""GIF.  https://www.w3.org/Graphics/GIF/spec-gif89a.txt"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from models.images.formats.contract import (
    Format,
    Header,
    ImageError,
    Unseen,
    film_header,
    header,
    times_of,
)

SCREEN = struct.Struct("<HHBBB")  # width, height, flags, background, aspect
FRAME = struct.Struct("<HHHHB")  # left, top, width, height, flags
EXTENSION, DESCRIPTOR, END, CONTROL = 0x21, 0x2C, 0x3B, 0xF9
MAX_LEADING_BLOCKS = 20_000  # 5 MB, if all before the first frame are comments
MAX_ALL_BLOCKS = 200_000  # 32 MiB in blocks of 255 bytes are 132,000

# The present, previous and next canvas, and a frame on its way to RGB.
CANVAS_BYTES_PER_PIXEL = 24


@dataclass(frozen=True, slots=True)
class Start:
    """The end of the screen's palette, the position of the first frame, and its transparent colour."""

    palette_end: int
    frame: int
    transparent: int | None


def header_of(encoded: bytes) -> Header:
    """Return the screen as the canvas, or the size of the first frame if that is larger."""
    width, height, *_ = SCREEN.unpack_from(encoded, 6)
    left, top, across, down, _ = FRAME.unpack_from(encoded, start(encoded).frame + 1)
    return header("GIF", max(width, left + across), max(height, top + down))


def film(encoded: bytes) -> Header:
    """Return the header with a canvas that every frame fits in."""
    width, height, *_ = SCREEN.unpack_from(encoded, 6)
    durations, delay = list[float](), 0.0
    for kind, at in blocks(encoded, MAX_ALL_BLOCKS):
        if kind == DESCRIPTOR:
            left, top, across, down, _ = FRAME.unpack_from(encoded, at + 1)
            width, height = max(width, left + across), max(height, top + down)
            durations.append(delay)
            delay = 0.0
        elif encoded[at + 1] == CONTROL:
            [hundredths] = struct.unpack_from("<H", encoded, at + 4)
            delay = hundredths / 100
    if len(durations) < 2:
        return header_of(encoded)
    return film_header("GIF", width, height, times_of(durations), CANVAS_BYTES_PER_PIXEL)


def unseen(encoded: bytes) -> Unseen:
    """Search for a second frame, and for a transparent colour of the first; there is no Exif."""
    usual = len(encoded) // 64 + 100  # an encoder's blocks have 255 bytes except the last
    descriptors = (at for kind, at in blocks(encoded, usual) if kind == DESCRIPTOR)
    more_frames = len([*islice(descriptors, 2)]) == 2
    return Unseen(more_frames=more_frames, alpha=start(encoded).transparent is not None)


def plain(encoded: bytes) -> bytes:
    """
    Keep the screen, the palette and the first frame.

    The frame's disposal method is removed: Pillow would fill a picture for it when it opens the file.
    """
    found = start(encoded)
    control = b""
    if found.transparent is not None:  # the colour of pixels that the frame omits
        control = bytes([EXTENSION, CONTROL, 4, 1, 0, 0, found.transparent, 0])
    return encoded[: found.palette_end] + control + encoded[found.frame :]


def start(encoded: bytes) -> Start:
    """Find the first frame.  Raises `ImageError` if it is missing."""
    transparent = None
    for kind, at in blocks(encoded, MAX_LEADING_BLOCKS):
        if kind == DESCRIPTOR:
            return Start(13 + palette_bytes(encoded[10]), at, transparent)
        if encoded[at + 1] == CONTROL and encoded[at + 3] & 1:
            transparent = encoded[at + 6]
    raise ImageError("nothing leads to the first frame of the GIF image")


def blocks(encoded: bytes, most: int) -> Iterator[tuple[int, int]]:
    """
    Yield kind and position of each extension and each frame's descriptor.

    Raises `ImageError` after *most* steps.
    """
    at, inside = 13 + palette_bytes(encoded[10]), False
    for _ in range(most):
        if at >= len(encoded):
            return
        kind = encoded[at]
        if inside:  # blocks of data, the last of which is empty
            at, inside = at + 1 + kind, kind > 0
        elif kind == EXTENSION:
            yield kind, at
            at, inside = at + 2, True
        elif kind == DESCRIPTOR:
            yield kind, at
            at, inside = at + 11 + palette_bytes(encoded[at + 9]), True
        elif kind == END:
            return
        else:  # stray bytes between blocks, skipped by all readers
            at += 1
    raise ImageError(f"nothing leads to the first frame of the GIF image, or to its end, in {most} steps")


def palette_bytes(flags: int) -> int:
    """Return the size of the palette that follows, or 0."""
    return 3 << ((flags & 7) + 1) if flags & 128 else 0


GIF = Format("GIF", (b"GIF87a", b"GIF89a"), header_of, plain, film, unseen)
