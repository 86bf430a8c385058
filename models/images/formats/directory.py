"""The first directory of a TIFF file; Exif data have the same form."""

from collections.abc import Mapping
from typing import Literal

BIG = 43  # in place of 42
BYTES = {3: 2, 4: 4, 16: 8}  # of a number, by type
MAX_TAGS = 1_000


class Directory:
    """
    Its tags.

    Raises `ValueError` where the file breaks off before its end.

    Args:
        most: tags that are read at most.

    Attributes:
        tags: the number of each tag that holds one; 0 for a tag that holds something else.
        last: whether no other directory follows.
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
