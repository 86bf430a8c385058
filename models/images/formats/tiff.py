"""TIFF and BigTIFF.  https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf"""

from models.images.formats.contract import Format, Header, ImageError, Unseen, header, starts
from models.images.formats.directory import Directory
from models.images.formats.orientation import of_directory

# The picture in up to 32 bits, its RGB form, and a strip or tile of the same size, packed and unpacked.
BYTES_PER_PIXEL = 20

WIDTH, HEIGHT, BITS, SAMPLES, EXTRA = 256, 257, 258, 277, 338  # tags
ALPHA = (1, 2)  # kinds of extra samples: premultiplied or not


def read(encoded: bytes) -> Header:
    """
    Read the size from two tags of the first directory.

    The decoder also uses the size of tiles, which may be larger, so it runs in a separate process.
    """
    tags = Directory(encoded).tags
    if not {WIDTH, HEIGHT} <= tags.keys():
        raise ImageError("the TIFF image does not say its size")
    return header("TIFF", tags[WIDTH], tags[HEIGHT], BYTES_PER_PIXEL, apart=True)


def unseen(encoded: bytes) -> Unseen:
    """Read the orientation and the kind of samples; each page has a directory."""
    first = Directory(encoded)
    grey16 = first.tags.get(SAMPLES, 1) == 1 and first.tags.get(BITS, 1) > 8
    return Unseen(of_directory(first), not first.last, first.tags.get(EXTRA) in ALPHA, grey16)


TIFF = Format("TIFF", starts(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), read, unseen=unseen)
