"""GIF.  https://www.w3.org/Graphics/GIF/spec-gif89a.txt"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from models.images.formats.contract import Format, Header, ImageError, Unseen, film_header, header, starts

SCREEN = struct.Struct("<HHBBB")  # width, height, flags, background, aspect
FRAME = struct.Struct("<HHHHB")  # left, top, width, height, flags
EXTENSION, DESCRIPTOR, END, CONTROL = 0x21, 0x2C, 0x3B, 0xF9
MAX_BLOCKS = 20_000  # before the first frame; of comments that would be 5 MB
MAX_ALL_BLOCKS = 200_000  # in the whole file; 32 MiB in blocks of 255 bytes are 132,000

# The canvas as it is shown, as it was, as it is to become, and a frame on its way to RGB.
CANVAS_BYTES_PER_PIXEL = 24


@dataclass(frozen=True, slots=True)
class Start:
    """Where the palette of the screen ends, where the first frame is, and its transparent colour."""

    palette_end: int
    frame: int
    transparent: int | None


def read(encoded: bytes) -> Header:
    """The canvas is the screen, or as large as the first frame needs."""
    width, height, *_ = SCREEN.unpack_from(encoded, 6)
    left, top, across, down, _ = FRAME.unpack_from(encoded, start(encoded).frame + 1)
    return header("GIF", max(width, left + across), max(height, top + down))


def film(encoded: bytes) -> Header:
    """The canvas is as large as any frame needs."""
    width, height, *_ = SCREEN.unpack_from(encoded, 6)
    frames = 0
    for kind, at in blocks(encoded, MAX_ALL_BLOCKS):
        if kind == DESCRIPTOR:
            left, top, across, down, _ = FRAME.unpack_from(encoded, at + 1)
            width, height, frames = max(width, left + across), max(height, top + down), frames + 1
    return film_header("GIF", width, height, frames, CANVAS_BYTES_PER_PIXEL) if frames > 1 else read(encoded)


def unseen(encoded: bytes) -> Unseen:
    """There is no Exif; what is searched for is a second frame."""
    usual = len(encoded) // 64 + 100  # blocks of any encoder's, which have 255 bytes but for the last
    descriptors = (at for kind, at in blocks(encoded, usual) if kind == DESCRIPTOR)
    return Unseen(more_frames=len([*islice(descriptors, 2)]) == 2)


def plain(encoded: bytes) -> bytes:
    """
    The screen, the palette and the first frame.

    How the frame would be disposed of goes: Pillow fills a picture for that when it opens the file.
    """
    found = start(encoded)
    control = b""
    if found.transparent is not None:  # the colour of what the frame leaves out
        control = bytes([EXTENSION, CONTROL, 4, 1, 0, 0, found.transparent, 0])
    return encoded[: found.palette_end] + control + encoded[found.frame :]


def start(encoded: bytes) -> Start:
    """Where the first frame is.  Raises `ImageError` where nothing leads to one."""
    transparent = None
    for kind, at in blocks(encoded, MAX_BLOCKS):
        if kind == DESCRIPTOR:
            return Start(13 + palette_bytes(encoded[10]), at, transparent)
        if encoded[at + 1] == CONTROL and encoded[at + 3] & 1:
            transparent = encoded[at + 6]
    raise ImageError("nothing leads to the first frame of the GIF image")


def blocks(encoded: bytes, most: int) -> Iterator[tuple[int, int]]:
    """
    Kind and place of each extension and each frame's descriptor, to the end of the file.

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
        else:  # stray bytes between blocks, which all readers skip
            at += 1
    raise ImageError(f"nothing leads to the first frame of the GIF image, or to its end, in {most} steps")


def palette_bytes(flags: int) -> int:
    """Bytes of the palette that follows, if one does."""
    return 3 << ((flags & 7) + 1) if flags & 128 else 0


GIF = Format("GIF", starts(b"GIF87a", b"GIF89a"), read, plain, film, unseen)
