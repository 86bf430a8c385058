"""TIFF and BigTIFF.  https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf"""

from typing import Literal

from models.formats.contract import Format, Header, ImageError, header, starts

# The picture in up to 32 bits, its RGB form, and a strip or tile that may be as large, packed and unpacked.
BYTES_PER_PIXEL = 20

BIG = 43  # in place of 42
WIDTH, HEIGHT = 256, 257  # tags
BYTES = {3: 2, 4: 4, 16: 8}  # of a number, by type
MAX_TAGS = 1_000


def read(encoded: bytes) -> Header:
    """
    The size is in two tags of the first directory.

    The decoder goes by the size of tiles as well, which may be larger.
    """
    order: Literal["little", "big"] = "little" if encoded[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        if at + size > len(encoded):
            raise ValueError(at)
        return int.from_bytes(encoded[at : at + size], order)

    big = number(2, 2) == BIG
    place, counted, wide, value = (number(8, 8), 8, 20, 12) if big else (number(4, 4), 2, 12, 8)
    tags = dict[int, int]()
    for entry in range(min(number(place, counted), MAX_TAGS)):
        at = place + counted + wide * entry
        tags[number(at, 2)] = number(at + value, BYTES.get(number(at + 2, 2), 0))
    if not {WIDTH, HEIGHT} <= tags.keys():
        raise ImageError("the TIFF image does not say its size")
    return header("TIFF", tags[WIDTH], tags[HEIGHT], BYTES_PER_PIXEL, apart=True)


TIFF = Format("TIFF", starts(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), read)
