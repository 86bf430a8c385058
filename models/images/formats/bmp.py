"""BMP.  https://learn.microsoft.com/windows/win32/gdi/bitmap-storage"""

import struct

from models.images.formats.contract import Format, Header, ImageError, Unseen, header, starts

OLD = 12  # bytes of the header of OS/2, whose sizes have 16 bits
RUN_LENGTH, MASKS = (1, 2), 3  # compressions
WITH_ALPHA_MASK = 56  # bytes of the first header that has one
MAX_COLOURS = 256


def header_of(encoded: bytes) -> Header:
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


def unseen(encoded: bytes) -> Unseen:
    """Return the alpha, by its mask in a header of version 3 or later."""
    [head] = struct.unpack_from("<I", encoded, 14)
    if head < WITH_ALPHA_MASK:
        return Unseen()
    bits, compression = struct.unpack_from("<HI", encoded, 28)
    [mask] = struct.unpack_from("<I", encoded, 66)
    return Unseen(alpha=bits == 32 and compression == MASKS and mask > 0)


BMP = Format("BMP", starts(b"BM"), header_of, unseen=unseen)
