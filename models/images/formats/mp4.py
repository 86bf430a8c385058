"""
MP4 videos and AVIF pictures: both files consist of boxes.

ISO/IEC 14496-12, https://developer.apple.com/documentation/quicktime-file-format,
https://aomediacodec.github.io/av1-avif/
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.images.formats.contract import (
    Format,
    Header,
    ImageError,
    Unseen,
    few_enough,
    film_header,
    header,
)
from models.images.formats.icc import is_other

MAX_BOXES = 10_000
ANY = (b"",)  # the first box has the format, after its length

Range = tuple[int, int]


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


# --- AVIF

# Four planes of up to twelve bits, decoded and joined from tiles, and copies on the way to RGB.
AVIF_BYTES_PER_PIXEL = 24

# A box, its version and two numbers.
IMAGE_SIZE = re.compile(rb"\0\0\0\x14ispe\0\0\0\0(.{4})(.{4})", re.DOTALL)
# An auxiliary picture that is an alpha channel has one of them in its name.
ALPHA_NAMES = (b"auxiliary:alpha", b"auxid:1")
PROFILE_KINDS = (b"prof", b"rICC")  # kinds of a box of colours
AVIF_BRANDS = (b"avif", b"avis")
HEIC_BRANDS = (b"hei", b"hev")  # how they begin
GENERAL_BRANDS = (b"mif1", b"msf1")  # pictures of any coding have them
MAX_BRAND_BYTES = 256  # a longer box is read so far

# Quarter turns to the left, and then a mirror from top to bottom or from left to right, as EXIF counts them.
ORIENTATIONS: Mapping[int | None, tuple[int, ...]] = {
    None: (1, 8, 3, 6),
    0: (4, 5, 2, 7),
    1: (2, 7, 4, 5),
}


def avif_header(encoded: bytes) -> Header:
    """
    Return the largest size of any picture in the file: a grid has its own size and the size of its tiles.

    The decoder uses the sizes in the coded pictures, which may differ, so it runs in a separate process.
    """
    sizes = [
        [int.from_bytes(number, "big") for number in found.groups()] for found in IMAGE_SIZE.finditer(encoded)
    ]
    if not sizes:
        raise ImageError("the AVIF image does not say its size")
    width, height = max(sizes, key=lambda size: size[0] * size[1])
    return header("AVIF", width, height, AVIF_BYTES_PER_PIXEL, apart=True)


def avif_unseen(encoded: bytes) -> Unseen:
    """
    Read the profile, and the properties that turn and mirror the picture.

    Decoders use these and ignore Exif data.  An animation is a track, as in a video.
    """
    whole, properties, alpha, profile = (0, len(encoded)), dict[bytes, int](), False, False
    if meta := first(encoded, whole, b"meta"):
        inside = meta[0] + 4, meta[1]  # version and flags come first
        if place := first(encoded, inside, b"iprp", b"ipco"):
            found = [(kind, at, end) for kind, at, end in boxes(encoded, *place) if end > at]
            properties = {kind: encoded[at] for kind, at, _ in found}
            alpha = any(
                kind == b"auxC" and any(name in encoded[at:end] for name in ALPHA_NAMES)
                for kind, at, end in found
            )
            colours = [
                (at, end)
                for kind, at, end in found
                if kind == b"colr" and encoded[at : at + 4] in PROFILE_KINDS
            ]
            profile = bool(colours) and is_other(encoded[colours[0][0] + 4 : colours[0][1]])
    axis = properties[b"imir"] & 1 if b"imir" in properties else None
    sizes = first(encoded, whole, b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsz")
    frames = struct.unpack_from(">I", encoded, sizes[0] + 8)[0] if sizes else 1
    orientation = ORIENTATIONS[axis][properties.get(b"irot", 0) & 3]
    return Unseen(orientation, frames > 1, alpha, profile=profile)


def is_avif(encoded: bytes) -> bool:
    """Return True for a file of that brand, or of a general one with it among the compatible ones."""
    return coding_of(encoded) in AVIF_BRANDS


def is_heic(encoded: bytes) -> bool:
    """Return True for a HEIC file likewise, which is not read here."""
    return coding_of(encoded).startswith(HEIC_BRANDS)


def coding_of(encoded: bytes) -> bytes:
    """Return the brand of a file; where it is a general one, the first compatible one of a coding."""
    if encoded[4:8] != b"ftyp":
        return b""
    end = min(int.from_bytes(encoded[:4], "big"), MAX_BRAND_BYTES)
    named = [encoded[8:12], *(encoded[at : at + 4] for at in range(16, end, 4))]
    codings = (brand for brand in named if brand in AVIF_BRANDS or brand.startswith(HEIC_BRANDS))
    return next(codings, named[0]) if named[0] in GENERAL_BRANDS else named[0]


AVIF = Format(
    "AVIF", ANY, avif_header, unseen=avif_unseen, begins=is_avif, about="Decoded in a separate process."
)


# --- MP4

# Reference frames, sixteen in most codecs, and one frame on its way to RGB.
CANVAS_BYTES_PER_PIXEL = 64
LIBRARY_BYTES = 64 * 2**20  # a decoder takes them for any size

MP4_PACKAGE = "av"  # PyAV, which decodes it

MP4_BRANDS = (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ")
TABLE_PATH = (b"mdia", b"minf", b"stbl")  # boxes from a track to the tables of its frames
# The kind of a track, the size of its frames and their number stand there in their boxes.
HANDLER_OFFSET, SIZE_OFFSET, COUNT_OFFSET = 8, 8 + 32, 8
TIMESCALE_OFFSETS = (12, 20)  # versions 0 and 1 of the box mdhd differ
RUNS_OFFSET = 8  # each run is a number of frames and their value


def mp4_header(encoded: bytes) -> Header:
    """
    Read the size and the times of the frames of the first video track.

    Raises `ImageError` if there is no such track, or if its frames are in fragments, which no table counts.
    """
    for track in within(encoded, (0, len(encoded)), b"moov", b"trak"):
        for media in within(encoded, track, b"mdia"):
            [handler, *_] = within(encoded, media, b"hdlr")
            if encoded[handler[0] + HANDLER_OFFSET :][:4] == b"vide":
                return video(encoded, track, media)
    raise ImageError("the MP4 file has no track of pictures")


def video(encoded: bytes, track: Range, media: Range) -> Header:
    """Return the header of a video track, and of the *media* in it."""
    [described, *_] = within(encoded, track, *TABLE_PATH, b"stsd")
    [sizes, *_] = within(encoded, track, *TABLE_PATH, b"stsz")
    width, height = struct.unpack_from(">HH", encoded, described[0] + SIZE_OFFSET)
    [frames] = struct.unpack_from(">I", encoded, sizes[0] + COUNT_OFFSET)
    if not frames:
        raise ImageError("the MP4 file comes in fragments; send it in one piece")
    few_enough("MP4", frames)
    header = film_header("MP4", width, height, times(encoded, media, frames), CANVAS_BYTES_PER_PIXEL)
    return replace(header, memory=header.memory + LIBRARY_BYTES)


def times(encoded: bytes, media: Range, frames: int) -> Sequence[float]:
    """Return when each frame appears, from 0, in the order of presentation, and when the last one ends."""
    [head, *_] = within(encoded, media, b"mdhd")
    [scale] = struct.unpack_from(">I", encoded, head[0] + TIMESCALE_OFFSETS[encoded[head[0]]])
    [decoding] = within(encoded, media, *TABLE_PATH[1:], b"stts")
    durations = runs(encoded, decoding, frames)
    if not scale or durations.min() < 0:
        raise ImageError("the times of the MP4 file are broken")
    ends = durations.cumsum()
    shown = ends - durations
    if later := first(encoded, media, *TABLE_PATH[1:], b"ctts"):  # frames are decoded in another order
        shown = np.sort(shown + runs(encoded, later, frames))
    last = max(1, durations[-1])  # some writers leave it at 0, and no frame without a duration is taken
    units = np.append(shown, shown[-1] + last) - shown[0]
    seconds: list[float] = (units / scale).tolist()
    return seconds


def runs(encoded: bytes, table: Range, frames: int) -> NDArray[np.int64]:
    """Return the value of each frame, from a table of runs.  Raises `ImageError` if it has another number."""
    [count] = struct.unpack_from(">I", encoded, table[0] + RUNS_OFFSET - 4)
    pairs = np.frombuffer(encoded, ">i4", 2 * min(count, frames), table[0] + RUNS_OFFSET).reshape(-1, 2)
    if pairs[:, 0].min(initial=0) < 0 or pairs[:, 0].sum() != frames:
        raise ImageError(f"the times of the MP4 file are not those of its {frames} frames")
    return np.repeat(pairs[:, 1].astype(np.int64), pairs[:, 0])


def is_mp4(encoded: bytes) -> bool:
    """Return True for a file with a brand of MP4 in its first box."""
    return encoded[4:8] == b"ftyp" and encoded[8:12] in MP4_BRANDS


MP4 = Format("MP4", ANY, mp4_header, film=mp4_header, begins=is_mp4, about="Needs the package `av`.")
