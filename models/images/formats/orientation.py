"""The EXIF orientation of a picture, and its pixels without it.  CIPA DC-008 (Exif), tag 274"""

import PIL.Image

from models.images.formats.directory import Directory

TAG = 274
PREFIX = b"Exif\0\0"  # before the directory in a JPEG, and in the files of some other writers
MAX_TAGS = 100  # of Exif data's first directory; a camera writes some twenty
STORED = 1  # the pixels are as they are to be shown

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
    The orientation that Exif data name, from 1 to 8; 1 where they name none.

    Raises `LookupError` or `ValueError` for data that break off.
    """
    return of_directory(Directory(exif.removeprefix(PREFIX), MAX_TAGS))


def of_directory(directory: Directory) -> int:
    """The same of the first directory of a TIFF file, which Exif data are."""
    named = directory.tags.get(TAG, STORED)
    return named if named in TURNS else STORED


def turned(picture: PIL.Image.Image, orientation: int) -> PIL.Image.Image:
    """*picture* as it is to be shown where it was stored with that orientation."""
    turn = TURNS.get(orientation)
    return picture if turn is None else picture.transpose(turn)
