"""A picture file as RGB pixels."""

import PIL.Image

from models.formats.apart import decode_apart
from models.formats.pillow import rgb
from models.formats.registry import plain, read_header


def decode(encoded: bytes) -> PIL.Image.Image:
    """RGB pixels of the first frame, within the memory that the header asks for.  Raises `ImageError`."""
    header = read_header(encoded)
    return decode_apart(encoded, header.format) if header.apart else rgb(plain(encoded), header)
