"""Decoding of picture files to RGB."""

import PIL.Image

from models.images.formats.apart import decode_apart
from models.images.formats.contract import Header
from models.images.formats.pillow import rgb
from models.images.formats.registry import plain, read_header


def decode(encoded: bytes) -> PIL.Image.Image:
    """Decode the first frame to RGB, within the memory of the header.  Raises `ImageError`."""
    header = read_header(encoded)
    if not header.apart:
        return rgb(plain(encoded), header)
    [picture] = decode_apart(encoded, header.format)
    return picture


def decode_film(encoded: bytes, header: Header) -> list[PIL.Image.Image]:
    """
    Decode the frames of an animation that its header keeps to RGB, in one pass.  Raises `ImageError`.

    Always in a separate process, since frames build on each other and few decoders are hardened for that.
    """
    return decode_apart(encoded, header.format, header.kept) if header.kept else []
