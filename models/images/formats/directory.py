"""The first directory of a TIFF file, which is also the format of Exif data."""

from collections.abc import Mapping
from typing import Literal

BIG = 43  # in place of 42
BYTES = {3: 2, 4: 4, 16: 8}  # of a number, by type
MAX_TAGS = 1_000


class Directory:
    """
    The tags of a directory.  Raises `ValueError` for a truncated file.

    Args:
        most: limit of the number of tags.

    Attributes:
        tags: the number of each tag; 0 if its value is not a number.
        last: no other directory follows.
    """

    def __init__(self, encoded: bytes, most: int = MAX_TAGS) -> None:
        self._encoded = encoded
        self._order: Literal["little", "big"] = "little" if encoded[:2] == b"II" else "big"
        big = self._number(2, 2) == BIG
        place, counted, wide, value = (8, 8, 20, 12) if big else (4, 2, 12, 8)
        width = 8 if big else 4  # of a place in the file
        start = self._number(place, width)
        entries = self._number(start, counted)
        tags = dict[int, int]()
        for entry in range(min(entries, most)):
            at = start + counted + wide * entry
            tags[self._number(at, 2)] = self._number(at + value, BYTES.get(self._number(at + 2, 2), 0))
        self.tags: Mapping[int, int] = tags
        behind = start + counted + wide * entries
        self.last = behind + width > len(encoded) or not self._number(behind, width)

    def _number(self, at: int, size: int) -> int:
        if at + size > len(self._encoded):
            raise ValueError(at)
        return int.from_bytes(self._encoded[at : at + size], self._order)
