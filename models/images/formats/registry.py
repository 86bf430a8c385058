"""All formats."""

import struct
from contextlib import suppress

from models.images.formats.bmp import BMP
from models.images.formats.contract import Format, Header, ImageError, Unseen
from models.images.formats.gif import GIF
from models.images.formats.jpeg import JPEG
from models.images.formats.mp4 import AVIF, MP4, is_heic
from models.images.formats.png import PNG
from models.images.formats.tiff import TIFF
from models.images.formats.webp import WEBP

FORMATS = {format.name: format for format in (JPEG, PNG, WEBP, GIF, BMP, AVIF, TIFF, MP4)}

# Raised for a truncated file.
TRUNCATED_ERRORS = (LookupError, ValueError, struct.error)


def recognise(encoded: bytes) -> Format:
    """Return the format of a picture file.  Raises `ImageError`."""
    for format in FORMATS.values():
        if encoded.startswith(format.signatures) and (format.begins is None or format.begins(encoded)):
            return format
    if is_heic(encoded):
        raise ImageError("the image is HEIC, which is not read: convert it to JPEG or PNG")
    raise ImageError("the bytes are no image of a known format")


def read_header(encoded: bytes) -> Header:
    """Read the header of a picture file, without decoding.  Raises `ImageError`."""
    format = recognise(encoded)
    with suppress(*TRUNCATED_ERRORS):
        return format.read(encoded)
    raise ImageError(f"the {format.name} image is broken or truncated")


def read_film(encoded: bytes) -> Header:
    """Read the header of an animation: its frames and its canvas.  Raises `ImageError`."""
    format = recognise(encoded)
    with suppress(*TRUNCATED_ERRORS):
        return (format.film or format.read)(encoded)
    raise ImageError(f"the {format.name} file is broken or truncated")


def read_unseen(encoded: bytes) -> Unseen:
    """Return what the first frame of a file does not show; an empty `Unseen` for a broken file."""
    with suppress(ImageError, *TRUNCATED_ERRORS):
        return recognise(encoded).unseen(encoded)
    return Unseen()


def plain(encoded: bytes) -> bytes:
    """Remove everything that does not change the pixels.  Raises `ImageError`."""
    format = recognise(encoded)
    with suppress(*TRUNCATED_ERRORS):
        return format.plain(encoded)
    raise ImageError(f"the {format.name} image is broken or truncated")
