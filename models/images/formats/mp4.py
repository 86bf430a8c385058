"""MP4 videos.  https://developer.apple.com/documentation/quicktime-file-format, ISO/IEC 14496-12"""

import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.images.formats.boxes import Range, branded, first, within
from models.images.formats.contract import Format, Header, ImageError, few_enough, film_header

# Reference frames, sixteen in most codecs, and one frame on its way to RGB.
CANVAS_BYTES_PER_PIXEL = 64
LIBRARY_BYTES = 64 * 2**20  # of a decoder, for any size

MP4_PACKAGE = "av"  # PyAV, which decodes it

BRANDS = (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ")
TABLES = (b"mdia", b"minf", b"stbl")  # from a track down to the tables of its frames
HANDLER, SIZE, COUNT = 8, 8 + 32, 8  # offsets of the kind of track, the frames' size and their number
TIMESCALE = (12, 20)  # its offset in mdhd, by the version of that box
RUNS = 8  # offset of a table's runs, each a number of frames and their value


def read(encoded: bytes) -> Header:
    """
    Read the size and the times of the frames of the first video track.

    Raises `ImageError` if it is missing, or if its frames are in fragments, whose number no table holds.
    """
    for track in within(encoded, (0, len(encoded)), b"moov", b"trak"):
        for media in within(encoded, track, b"mdia"):
            [handler, *_] = within(encoded, media, b"hdlr")
            if encoded[handler[0] + HANDLER :][:4] == b"vide":
                return video(encoded, track, media)
    raise ImageError("the MP4 file has no track of pictures")


def video(encoded: bytes, track: Range, media: Range) -> Header:
    """Return the header of a video track, and of the *media* in it."""
    [described, *_] = within(encoded, track, *TABLES, b"stsd")
    [sizes, *_] = within(encoded, track, *TABLES, b"stsz")
    width, height = struct.unpack_from(">HH", encoded, described[0] + SIZE)
    [frames] = struct.unpack_from(">I", encoded, sizes[0] + COUNT)
    if not frames:
        raise ImageError("the MP4 file comes in fragments; send it in one piece")
    few_enough("MP4", frames)
    header = film_header("MP4", width, height, times(encoded, media, frames), CANVAS_BYTES_PER_PIXEL)
    return replace(header, memory=header.memory + LIBRARY_BYTES)


def times(encoded: bytes, media: Range, frames: int) -> Sequence[float]:
    """Return when each frame appears, from 0, in the order of presentation, and when the last one ends."""
    [head, *_] = within(encoded, media, b"mdhd")
    [scale] = struct.unpack_from(">I", encoded, head[0] + TIMESCALE[encoded[head[0]]])
    [decoding] = within(encoded, media, *TABLES[1:], b"stts")
    durations = runs(encoded, decoding, frames)
    if not scale or durations.min() < 0:
        raise ImageError("the times of the MP4 file are broken")
    ends = durations.cumsum()
    shown = ends - durations
    if later := first(encoded, media, *TABLES[1:], b"ctts"):  # frames are decoded in another order
        shown = np.sort(shown + runs(encoded, later, frames))
    last = max(1, durations[-1])  # some writers leave it at 0, and no frame without a duration is taken
    units = np.append(shown, shown[-1] + last) - shown[0]
    seconds: list[float] = (units / scale).tolist()
    return seconds


def runs(encoded: bytes, table: Range, frames: int) -> NDArray[np.int64]:
    """Return the value of each frame, from a table of runs.  Raises `ImageError` if it has another number."""
    [count] = struct.unpack_from(">I", encoded, table[0] + RUNS - 4)
    pairs = np.frombuffer(encoded, ">i4", 2 * min(count, frames), table[0] + RUNS).reshape(-1, 2)
    if pairs[:, 0].min(initial=0) < 0 or pairs[:, 0].sum() != frames:
        raise ImageError(f"the times of the MP4 file are not those of its {frames} frames")
    return np.repeat(pairs[:, 1].astype(np.int64), pairs[:, 0])


MP4 = Format("MP4", branded(*BRANDS), read, film=read)
