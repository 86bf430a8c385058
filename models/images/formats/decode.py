"""A picture file as RGB pixels."""

import PIL.Image

from models.images.formats.apart import decode_apart
from models.images.formats.pillow import rgb
from models.images.formats.registry import plain, read_header


def decode(encoded: bytes) -> PIL.Image.Image:
    """RGB pixels of the first frame, within the memory that the header asks for.  Raises `ImageError`."""
    header = read_header(encoded)
    return decode_apart(encoded, header.format) if header.apart else rgb(plain(encoded), header)


def decode_film(encoded: bytes, format: str) -> PIL.Image.Image:
    """
    RGB pixels of all frames of an animation, one below the other.

    They are always decoded apart: one frame builds on another, and few decoders were made for strangers'
    animations.  Raises `ImageError`.
    """
    return decode_apart(encoded, format, all_frames=True)
