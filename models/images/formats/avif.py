"""AVIF.  https://aomediacodec.github.io/av1-avif/"""

import re
import struct
from collections.abc import Mapping

from models.images.formats.boxes import boxes, branded, first
from models.images.formats.contract import Format, Header, ImageError, Unseen, header

# Four planes of up to twelve bits, decoded and joined from tiles, and copies on the way to RGB.
BYTES_PER_PIXEL = 24

SIZE = re.compile(rb"\0\0\0\x14ispe\0\0\0\0(.{4})(.{4})", re.DOTALL)  # a box, its version and two numbers
ALPHA = (b"auxiliary:alpha", b"auxid:1")  # in the names of the auxiliary picture that is an alpha channel
BRANDS = (b"avif", b"avis", b"mif1", b"msf1")

# Quarter turns to the left, and then a mirror from top to bottom or from left to right, as EXIF counts them.
ORIENTATIONS: Mapping[int | None, tuple[int, ...]] = {
    None: (1, 8, 3, 6),
    0: (4, 5, 2, 7),
    1: (2, 7, 4, 5),
}


def read(encoded: bytes) -> Header:
    """
    Return the largest size of any picture in the file: a grid has its own and that of its tiles.

    The coded pictures repeat their sizes, and the decoder uses those, so it runs in a separate process.
    """
    sizes = [[int.from_bytes(number, "big") for number in found.groups()] for found in SIZE.finditer(encoded)]
    if not sizes:
        raise ImageError("the AVIF image does not say its size")
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    return header("AVIF", width, height, BYTES_PER_PIXEL, apart=True)


def unseen(encoded: bytes) -> Unseen:
    """
    Read the properties that turn and mirror the picture; decoders use these and ignore Exif data.

    An animation is a track, as in a video.
    """
    whole, properties, alpha = (0, len(encoded)), dict[bytes, int](), False
    if meta := first(encoded, whole, b"meta"):
        inside = meta[0] + 4, meta[1]  # behind version and flags
        if place := first(encoded, inside, b"iprp", b"ipco"):
            found = [(kind, at, end) for kind, at, end in boxes(encoded, *place) if end > at]
            properties = {kind: encoded[at] for kind, at, _ in found}
            alpha = any(
                kind == b"auxC" and any(name in encoded[at:end] for name in ALPHA) for kind, at, end in found
            )
    axis = properties[b"imir"] & 1 if b"imir" in properties else None
    sizes = first(encoded, whole, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsz")
    frames = struct.unpack_from(">I", encoded, sizes[0] + 8)[0] if sizes else 1
    return Unseen(ORIENTATIONS[axis][properties.get(b"irot", 0) & 3], frames > 1, alpha)


AVIF = Format("AVIF", branded(*BRANDS), read, unseen=unseen)
