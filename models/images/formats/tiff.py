"""
TIFF and BigTIFF, and the orientation in Exif data, which has the same directories.

https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf, CIPA DC-008 (Exif)
"""

from collections.abc import Mapping
from typing import Literal

from models.images.formats.contract import Format, Header, ImageError, Unseen, header
from models.images.formats.icc import MAX_PROFILE_BYTES, is_other

# The picture in up to 32 bits, its RGB form, and a strip or tile of the same size, packed and unpacked.
TIFF_BYTES_PER_PIXEL = 20

WIDTH, HEIGHT, BITS, ORIENTATION, SAMPLES, EXTRA, PROFILE = 256, 257, 258, 274, 277, 338, 34675  # tags
ALPHA_KINDS = (1, 2)  # kinds of extra samples: premultiplied or not
UPRIGHT, MAX_ORIENTATION = 1, 8

EXIF_SIGNATURE = b"Exif\0\0"  # it precedes the directory in a JPEG, and in some other files
MAX_EXIF_TAGS = 100  # a camera writes some twenty into the first directory

BIG_TIFF = 43  # other files have 42 there
BYTES_PER_NUMBER = {3: 2, 4: 4, 16: 8}  # the keys are types
MAX_TAGS = 1_000


class Directory:
    """
    The tags of a directory.  Raises `ValueError` for a truncated file.

    Args:
        most: limit of the number of tags.

    Attributes:
        tags: the number of each tag; 0 if its value is not a number.
        places: of the value of each tag in the file, if it is longer than a number.
        last: no other directory follows.
    """

    def __init__(self, encoded: bytes, most: int = MAX_TAGS) -> None:
        self._encoded = encoded
        self._order: Literal["little", "big"] = "little" if encoded[:2] == b"II" else "big"
        big = self._number(2, 2) == BIG_TIFF
        place, counted, wide, value = (8, 8, 20, 12) if big else (4, 2, 12, 8)
        width = 8 if big else 4  # a place in the file takes so many bytes
        start = self._number(place, width)
        entries = self._number(start, counted)
        tags, places = dict[int, int](), dict[int, int]()
        for entry in range(min(entries, most)):
            at = start + counted + wide * entry
            tags[self._number(at, 2)] = self._number(
                at + value, BYTES_PER_NUMBER.get(self._number(at + 2, 2), 0)
            )
            places[self._number(at, 2)] = self._number(at + value, width)
        self.tags: Mapping[int, int] = tags
        self.places: Mapping[int, int] = places
        behind = start + counted + wide * entries
        self.last = behind + width > len(encoded) or not self._number(behind, width)

    def _number(self, at: int, size: int) -> int:
        if at + size > len(self._encoded):
            raise ValueError(at)
        return int.from_bytes(self._encoded[at : at + size], self._order)


def of_exif(exif: bytes) -> int:
    """
    Return the orientation in Exif data, from 1 to 8; by default 1.

    Raises `LookupError` or `ValueError` for truncated data.
    """
    return of_directory(Directory(exif.removeprefix(EXIF_SIGNATURE), MAX_EXIF_TAGS))


def of_directory(directory: Directory) -> int:
    """Return the orientation in the first directory of a TIFF file."""
    named = directory.tags.get(ORIENTATION, UPRIGHT)
    return named if UPRIGHT < named <= MAX_ORIENTATION else UPRIGHT


def header_of(encoded: bytes) -> Header:
    """
    Read the size from two tags of the first directory.

    The decoder also uses the size of tiles, which may be larger, so it runs in a separate process.
    """
    tags = Directory(encoded).tags
    if not {WIDTH, HEIGHT} <= tags.keys():
        raise ImageError("the TIFF image does not say its size")
    return header("TIFF", tags[WIDTH], tags[HEIGHT], TIFF_BYTES_PER_PIXEL, apart=True)


def unseen(encoded: bytes) -> Unseen:
    """Read the orientation, the kind of samples and the profile; each page has a directory."""
    first = Directory(encoded)
    grey16 = first.tags.get(SAMPLES, 1) == 1 and first.tags.get(BITS, 1) > 8
    start = first.places.get(PROFILE)
    profile = start is not None and is_other(encoded[start : start + MAX_PROFILE_BYTES])
    return Unseen(of_directory(first), not first.last, first.tags.get(EXTRA) in ALPHA_KINDS, grey16, profile)


TIFF = Format(
    "TIFF",
    (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
    header_of,
    unseen=unseen,
    about="Off by default. Of several pages the first is used.",
)
