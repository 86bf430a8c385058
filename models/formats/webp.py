"""WebP.  https://developers.google.com/speed/webp/docs/riff_container"""

import struct

from models.formats.contract import Format, Header, ImageError, header

# The canvas twice in libwebp's decoder of animations, a frame, and two copies on the way to Pillow's RGB.
BYTES_PER_PIXEL = 20

LOSSY = b"VP8 "
DATA = 20  # where the data of the first chunk begins


def begins(encoded: bytes) -> bool:
    """Told from the kind of its container."""
    return encoded[:4] == b"RIFF" and encoded[8:12] == b"WEBP"


def read(encoded: bytes) -> Header:
    """
    The size of the canvas is in the first chunk, whichever of three it is.

    What lossless coding (alpha's, too) needs is not: its code tables can take many times the pixels.
    """
    kind = encoded[12:16]
    if kind == LOSSY:
        width, height = (size & 0x3FFF for size in struct.unpack_from("<HH", encoded, DATA + 6))
    elif kind == b"VP8X":
        width, height = (1 + int.from_bytes(encoded[at : at + 3], "little") for at in (DATA + 4, DATA + 7))
    elif kind == b"VP8L":
        [both] = struct.unpack_from("<I", encoded, DATA + 1)
        width, height = 1 + (both & 0x3FFF), 1 + (both >> 14 & 0x3FFF)
    else:
        raise ImageError("the WEBP image has no header")
    return header("WEBP", width, height, BYTES_PER_PIXEL, apart=kind != LOSSY)


def plain(encoded: bytes) -> bytes:
    """The first chunk alone, where it holds the picture."""
    if encoded[12:16] != LOSSY:
        return encoded
    [size] = struct.unpack_from("<I", encoded, 16)
    end = DATA + size + size % 2
    return b"RIFF" + struct.pack("<I", end - 8) + encoded[8:end]


WEBP = Format("WEBP", begins, read, plain)
