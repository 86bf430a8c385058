"""Decoding of picture files to RGB."""

import PIL.Image

from models.images.formats.apart import decode_apart
from models.images.formats.pillow import rgb
from models.images.formats.registry import plain, read_header


def decode(encoded: bytes) -> PIL.Image.Image:
    """Decode the first frame to RGB, within the memory of the header.  Raises `ImageError`."""
    header = read_header(encoded)
    return decode_apart(encoded, header.format) if header.apart else rgb(plain(encoded), header)


def decode_film(encoded: bytes, format: str) -> PIL.Image.Image:
    """
    Decode all frames of an animation to RGB, one below the other.  Raises `ImageError`.

    Always in a separate process, since frames build on each other and few decoders are hardened for that.
    """
    return decode_apart(encoded, format, all_frames=True)
