"""AVIF.  https://aomediacodec.github.io/av1-avif/"""

import re

from models.formats.contract import Format, Header, ImageError, header

# Four planes of up to twelve bits, as decoded and as put together from tiles, and copies on the way to RGB.
BYTES_PER_PIXEL = 24

SIZE = re.compile(rb"\0\0\0\x14ispe\0\0\0\0(.{4})(.{4})", re.DOTALL)  # a box, its version and two numbers
BRANDS = (b"avif", b"avis", b"mif1", b"msf1")


def begins(encoded: bytes) -> bool:
    """Told from the brand in its first box."""
    return encoded[4:8] == b"ftyp" and encoded[8:12] in BRANDS


def read(encoded: bytes) -> Header:
    """
    The largest size that it gives of any picture in it: a grid gives its own and that of its tiles.

    The coded pictures say their sizes again, and the decoder goes by those.
    """
    sizes = [[int.from_bytes(number, "big") for number in found.groups()] for found in SIZE.finditer(encoded)]
    if not sizes:
        raise ImageError("the AVIF image does not say its size")
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    return header("AVIF", width, height, BYTES_PER_PIXEL, apart=True)


AVIF = Format("AVIF", begins, read)
