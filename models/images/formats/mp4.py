"""MP4 videos.  https://developer.apple.com/documentation/quicktime-file-format, ISO/IEC 14496-12"""

import struct

from models.images.formats.boxes import Range, branded, within
from models.images.formats.contract import Format, Header, ImageError, film_header

# Reference frames, sixteen in most codecs, and one frame on its way to RGB.
CANVAS_BYTES_PER_PIXEL = 64
LIBRARY_BYTES = 64 * 2**20  # of a decoder, for any size

MP4_PACKAGE = "av"  # PyAV, which decodes it

BRANDS = (b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"M4V ")
TABLES = (b"mdia", b"minf", b"stbl")  # from a track down to the tables of its frames
HANDLER, SIZE, COUNT = 8, 8 + 32, 8  # offsets of the kind of track, the frames' size and their number


def read(encoded: bytes) -> Header:
    """
    Read the size and the number of frames of the first video track.

    Raises `ImageError` if it is missing, or if its frames are in fragments, whose number no table holds.
    """
    for track in within(encoded, (0, len(encoded)), b"moov", b"trak"):
        for media in within(encoded, track, b"mdia"):
            [handler, *_] = within(encoded, media, b"hdlr")
            if encoded[handler[0] + HANDLER :][:4] == b"vide":
                return video(encoded, track)
    raise ImageError("the MP4 file has no track of pictures")


def video(encoded: bytes, track: Range) -> Header:
    """Return the header of a video track."""
    [described, *_] = within(encoded, track, *TABLES, b"stsd")
    [sizes, *_] = within(encoded, track, *TABLES, b"stsz")
    width, height = struct.unpack_from(">HH", encoded, described[0] + SIZE)
    [frames] = struct.unpack_from(">I", encoded, sizes[0] + COUNT)
    if not frames:
        raise ImageError("the MP4 file comes in fragments; send it in one piece")
    header = film_header("MP4", width, height, frames, CANVAS_BYTES_PER_PIXEL)
    return Header(header.format, width, height, header.memory + LIBRARY_BYTES, header.apart, frames)


MP4 = Format("MP4", branded(*BRANDS), read, film=read)
