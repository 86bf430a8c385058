"""WebP.  https://developers.google.com/speed/webp/docs/riff_container"""

import struct
from collections.abc import Iterator

from models.images.formats.contract import Format, Header, ImageError, Unseen, film_header, header, times_of
from models.images.formats.icc import is_other
from models.images.formats.tiff import of_exif

# The canvas twice in libwebp's decoder of animations, a frame, and two copies on the way to RGB.
WEBP_BYTES_PER_PIXEL = 20

LOSSY_KIND = b"VP8 "
DATA_OFFSET = 20  # the first chunk's data start there
IS_ANIMATED, HAS_EXIF, HAS_ALPHA, HAS_PROFILE = 2, 8, 16, 32  # these flags stand in the first chunk VP8X
LOSSLESS_ALPHA = 16  # the last byte of a lossless picture's header has this flag
DURATION_OFFSET = 12  # a frame's chunk has other fields before it
MAX_CHUNKS = 20_000


def begins(encoded: bytes) -> bool:
    """Return True for a container, by its signature, of WebP."""
    return encoded[8:12] == b"WEBP"


def header_of(encoded: bytes) -> Header:
    """
    Read the size of the canvas from the first chunk, of any of three kinds.

    The memory for lossless coding (also of alpha) is not bounded by the size, because of its code tables.
    """
    kind = encoded[12:16]
    if kind == LOSSY_KIND:
        width, height = (size & 0x3FFF for size in struct.unpack_from("<HH", encoded, DATA_OFFSET + 6))
    elif kind == b"VP8X":
        width, height = (
            1 + int.from_bytes(encoded[at : at + 3], "little") for at in (DATA_OFFSET + 4, DATA_OFFSET + 7)
        )
    elif kind == b"VP8L":
        [both] = struct.unpack_from("<I", encoded, DATA_OFFSET + 1)
        width, height = 1 + (both & 0x3FFF), 1 + (both >> 14 & 0x3FFF)
    else:
        raise ImageError("the WEBP image has no header")
    return header("WEBP", width, height, WEBP_BYTES_PER_PIXEL, apart=kind != LOSSY_KIND)


def film(encoded: bytes) -> Header:
    """Read the duration of each frame from its chunk."""
    still = header_of(encoded)
    if encoded[12:16] != b"VP8X" or not encoded[DATA_OFFSET] & IS_ANIMATED:
        return still
    starts = [start + DURATION_OFFSET for kind, start, _ in chunks(encoded) if kind == b"ANMF"]
    if len(starts) < 2:
        return still
    times = times_of(int.from_bytes(encoded[at : at + 3], "little") / 1000 for at in starts)
    return film_header("WEBP", still.width, still.height, times, WEBP_BYTES_PER_PIXEL)


def unseen(encoded: bytes) -> Unseen:
    """Return the alpha, the EXIF orientation, the profile, and whether there are several frames."""
    if encoded[12:16] == b"VP8L":
        return Unseen(alpha=bool(encoded[DATA_OFFSET + 4] & LOSSLESS_ALPHA))
    if encoded[12:16] != b"VP8X":
        return Unseen()
    alpha = bool(encoded[DATA_OFFSET] & HAS_ALPHA)
    if not encoded[DATA_OFFSET] & (IS_ANIMATED | HAS_EXIF | HAS_PROFILE):
        return Unseen(alpha=alpha)
    orientation, frames, profile = 0, 0, False
    for kind, start, end in chunks(encoded):
        frames += kind == b"ANMF"
        if kind == b"EXIF" and encoded[DATA_OFFSET] & HAS_EXIF and not orientation:
            orientation = of_exif(encoded[start:end])
        if kind == b"ICCP" and encoded[DATA_OFFSET] & HAS_PROFILE and not profile:
            profile = is_other(encoded[start:end])
    return Unseen(orientation or 1, frames > 1, alpha, profile=profile)


def chunks(encoded: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind of each chunk, and start and end of its data.  Raises `ImageError` for too many."""
    at = 12
    for _ in range(MAX_CHUNKS):
        if at + 8 > len(encoded):
            return
        kind, size = struct.unpack_from("<4sI", encoded, at)
        yield kind, at + 8, at + 8 + size
        at += 8 + size + size % 2
    raise ImageError(f"the WEBP image has more than {MAX_CHUNKS} chunks")


def plain(encoded: bytes) -> bytes:
    """Keep only the first chunk if it is a lossy picture."""
    if encoded[12:16] != LOSSY_KIND:
        return encoded
    [size] = struct.unpack_from("<I", encoded, 16)
    end = DATA_OFFSET + size + size % 2
    return b"RIFF" + struct.pack("<I", end - 8) + encoded[8:end]


WEBP = Format("WEBP", (b"RIFF",), header_of, plain, film, unseen, begins)
