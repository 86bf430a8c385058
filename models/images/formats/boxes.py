"""The boxes that MP4 and AVIF files consist of.  ISO/IEC 14496-12"""

import struct
from collections.abc import Callable, Iterator

from models.images.formats.contract import ImageError

MAX_BOXES = 10_000

Range = tuple[int, int]


def branded(*brands: bytes) -> Callable[[bytes], bool]:
    """Return a function that recognises a file by the brand in its first box."""
    return lambda encoded: encoded[4:8] == b"ftyp" and encoded[8:12] in brands


def within(encoded: bytes, place: Range, *kinds: bytes) -> Iterator[Range]:
    """Yield the contents of each box at the path *kinds*."""
    for kind, start, end in boxes(encoded, *place):
        if kind == kinds[0] and kinds[1:]:
            yield from within(encoded, (start, end), *kinds[1:])
        elif kind == kinds[0]:
            yield start, end


def first(encoded: bytes, place: Range, *kinds: bytes) -> Range | None:
    """Return the contents of the box at the path *kinds*, the first at each level; None if it is missing."""
    found: Range | None = place
    for wanted in kinds:
        if found is None:
            return None
        found = next(((start, end) for kind, start, end in boxes(encoded, *found) if kind == wanted), None)
    return found


def boxes(encoded: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of each box in a range.  Raises `ImageError` if there are too many."""
    for _ in range(MAX_BOXES):
        if at + 8 > end:
            return
        size, kind = struct.unpack_from(">I4s", encoded, at)
        start = at + 8
        if size == 1:  # the size follows, in eight bytes
            [size] = struct.unpack_from(">Q", encoded, start)
            start += 8
        at = at + size if size else end  # 0: it goes to the end
        if at < start:
            raise ImageError("a box of the file is smaller than its own head")
        yield kind, start, min(at, end)
    raise ImageError(f"the file has more than {MAX_BOXES} boxes")
