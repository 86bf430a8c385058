"""TIFF and BigTIFF.  https://www.itu.int/itudoc/itu-t/com16/tiff-fx/docs/tiff6.pdf"""

from models.images.formats.contract import Format, Header, ImageError, Unseen, header, starts
from models.images.formats.directory import Directory
from models.images.formats.orientation import of_directory

# The picture in up to 32 bits, its RGB form, and a strip or tile of the same size, packed and unpacked.
BYTES_PER_PIXEL = 20

WIDTH, HEIGHT = 256, 257  # tags


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
    """Read the orientation; each page has a directory."""
    first = Directory(encoded)
    return Unseen(of_directory(first), more_frames=not first.last)


TIFF = Format("TIFF", starts(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), read, unseen=unseen)
