"""The EXIF orientation of a picture, and its pixels without it.  CIPA DC-008 (Exif), tag 274"""

import PIL.Image

from models.images.formats.directory import Directory

TAG = 274
PREFIX = b"Exif\0\0"  # before the directory in a JPEG, and in the files of some other writers
MAX_TAGS = 100  # of Exif data's first directory; a camera writes some twenty
STORED = 1  # the pixels are upright

TURNS = {
    2: PIL.Image.Transpose.FLIP_LEFT_RIGHT,
    3: PIL.Image.Transpose.ROTATE_180,
    4: PIL.Image.Transpose.FLIP_TOP_BOTTOM,
    5: PIL.Image.Transpose.TRANSPOSE,
    6: PIL.Image.Transpose.ROTATE_270,
    7: PIL.Image.Transpose.TRANSVERSE,
    8: PIL.Image.Transpose.ROTATE_90,
}


def of_exif(exif: bytes) -> int:
    """
    Return the orientation in Exif data, from 1 to 8; by default 1.

    Raises `LookupError` or `ValueError` for truncated data.
    """
    return of_directory(Directory(exif.removeprefix(PREFIX), MAX_TAGS))


def of_directory(directory: Directory) -> int:
    """Return the orientation in the first directory of a TIFF file."""
    named = directory.tags.get(TAG, STORED)
    return named if named in TURNS else STORED


def turned(picture: PIL.Image.Image, orientation: int) -> PIL.Image.Image:
    """Turn *picture*, stored with that orientation, upright."""
    turn = TURNS.get(orientation)
    return picture if turn is None else picture.transpose(turn)
