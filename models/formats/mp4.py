"""MP4 videos.  https://developer.apple.com/documentation/quicktime-file-format, ISO/IEC 14496-12"""

import struct
from collections.abc import Iterator

from models.formats.contract import Format, Header, ImageError, film_header

# Pictures that others are predicted from, sixteen in most codecs, and one on its way to RGB.
CANVAS_BYTES_PER_PIXEL = 64
LIBRARY_BYTES = 64 * 2**20  # what a decoder takes whatever the size

MP4_PACKAGE = "av"  # PyAV, which decodes it

BRANDS = (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ")
TABLES = (b"mdia", b"minf", b"stbl")  # from a track down to the tables of its frames
HANDLER, SIZE, COUNT = 8, 8 + 32, 8  # where the kind of track, the frames' size and their number stand
MAX_BOXES = 10_000

Range = tuple[int, int]


def begins(encoded: bytes) -> bool:
    """Told from the brand in its first box."""
    return encoded[4:8] == b"ftyp" and encoded[8:12] in BRANDS


def read(encoded: bytes) -> Header:
    """
    The size and the number of frames of the first track of pictures.

    Raises `ImageError` where there is none, or where its frames come in fragments, which no table counts.
    """
    for track in within(encoded, (0, len(encoded)), b"moov", b"trak"):
        for media in within(encoded, track, b"mdia"):
            [handler, *_] = within(encoded, media, b"hdlr")
            if encoded[handler[0] + HANDLER :][:4] == b"vide":
                return video(encoded, track)
    raise ImageError("the MP4 file has no track of pictures")


def video(encoded: bytes, track: Range) -> Header:
    """The header of one track of pictures."""
    [described, *_] = within(encoded, track, *TABLES, b"stsd")
    [sizes, *_] = within(encoded, track, *TABLES, b"stsz")
    width, height = struct.unpack_from(">HH", encoded, described[0] + SIZE)
    [frames] = struct.unpack_from(">I", encoded, sizes[0] + COUNT)
    if not frames:
        raise ImageError("the MP4 file comes in fragments; send it in one piece")
    header = film_header("MP4", width, height, frames, CANVAS_BYTES_PER_PIXEL)
    return Header(header.format, width, height, header.memory + LIBRARY_BYTES, header.apart, frames)


def within(encoded: bytes, place: Range, *kinds: bytes) -> Iterator[Range]:
    """The contents of each box that the path *kinds* leads to."""
    for kind, start, end in boxes(encoded, *place):
        if kind == kinds[0] and kinds[1:]:
            yield from within(encoded, (start, end), *kinds[1:])
        elif kind == kinds[0]:
            yield start, end


def boxes(encoded: bytes, at: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind, start and end of each box between two places.  Raises `ImageError` where there are too many."""
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
            raise ImageError("a box of the MP4 file is smaller than its own head")
        yield kind, start, min(at, end)
    raise ImageError(f"the MP4 file has more than {MAX_BOXES} boxes")


MP4 = Format("MP4", begins, read, film=read)
