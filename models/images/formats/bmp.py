"""BMP.  https://learn.microsoft.com/windows/win32/gdi/bitmap-storage"""

import struct

from models.images.formats.contract import Format, Header, ImageError, Unseen, header

OS2_HEADER_BYTES = 12  # its sizes have 16 bits
RUN_LENGTH_KINDS, MASKS_KIND = (1, 2), 3  # values of the field compression
ALPHA_HEADER_BYTES = 56  # the first header with an alpha mask
MAX_COLOURS = 256


def header_of(encoded: bytes) -> Header:
    """
    Read the size from the header; a negative height means rows from the top.

    Raises `ImageError` for run-length encoding, which no generator writes and whose cost is not bounded by
    the bytes.
    """
    [head] = struct.unpack_from("<I", encoded, 14)
    if head == OS2_HEADER_BYTES:
        return header("BMP", *struct.unpack_from("<HH", encoded, 18))
    width, height, _, bits, compression = struct.unpack_from("<IIHHI", encoded, 18)
    [colours] = struct.unpack_from("<I", encoded, 46)
    if compression in RUN_LENGTH_KINDS:
        raise ImageError("a BMP image with run-length encoding is not read here")
    if bits <= 8 and colours > MAX_COLOURS:
        raise ImageError("the BMP image has too many colours")
    return header("BMP", width, 2**32 - height if height >> 24 == 0xFF else height)


def unseen(encoded: bytes) -> Unseen:
    """Return the alpha, by its mask in a header of version 3 or later."""
    [head] = struct.unpack_from("<I", encoded, 14)
    if head < ALPHA_HEADER_BYTES:
        return Unseen()
    bits, compression = struct.unpack_from("<HI", encoded, 28)
    [mask] = struct.unpack_from("<I", encoded, 66)
    return Unseen(alpha=bits == 32 and compression == MASKS_KIND and mask > 0)


BMP = Format("BMP", (b"BM",), header_of, unseen=unseen, about="Not run-length encoded.")
