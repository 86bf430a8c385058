"""BMP.  https://learn.microsoft.com/windows/win32/gdi/bitmap-storage"""

import struct

from models.images.formats.contract import Format, Header, ImageError, header, starts

OLD = 12  # bytes of the header of OS/2, whose sizes have 16 bits
RUN_LENGTH = (1, 2)  # compressions
MAX_COLOURS = 256


def read(encoded: bytes) -> Header:
    """
    Read the size from the header; a negative height means rows from the top.

    Raises `ImageError` for run-length encoding, which no generator writes and whose cost is not bounded by
    the bytes.
    """
    [head] = struct.unpack_from("<I", encoded, 14)
    if head == OLD:
        return header("BMP", *struct.unpack_from("<HH", encoded, 18))
    width, height, _, bits, compression = struct.unpack_from("<IIHHI", encoded, 18)
    [colours] = struct.unpack_from("<I", encoded, 46)
    if compression in RUN_LENGTH:
        raise ImageError("a BMP image with run-length encoding is not read here")
    if bits <= 8 and colours > MAX_COLOURS:
        raise ImageError("the BMP image has too many colours")
    return header("BMP", width, 2**32 - height if height >> 24 == 0xFF else height)


BMP = Format("BMP", starts(b"BM"), read)
