"""PNG.  https://www.w3.org/TR/png-3/"""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice

from models.images.formats.contract import Format, Header, ImageError, Unseen, header, starts
from models.images.formats.tiff import of_exif

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHUNK = struct.Struct(">I4s")  # length of the data, kind
AROUND = CHUNK.size + 4  # bytes of a chunk without its data: the checksum is last
DEPTH = 24  # place of the bits of a colour; the kind of colours follows
GREY, WITH_ALPHA = 0, (4, 6)  # kinds of colours
MAX_CHUNKS = 20_000  # 32 MiB in chunks of 4 kB are 8,000


def header_of(encoded: bytes) -> Header:
    """Read the size from the first chunk."""
    if encoded[12:16] != b"IHDR":
        raise ImageError("the PNG image has no header")
    width, height = struct.unpack_from(">II", encoded, 16)
    return header("PNG", width, height)


def plain(encoded: bytes) -> bytes:
    """
    Keep the header, the palette and the pixels.

    Texts and profiles may be compressed.  Transparency is ignored.  Of an animation, the picture for viewers
    without animations remains.
    """
    kept, pixels = [SIGNATURE], []
    for kind, start, end in chunks(encoded):
        if kind in (b"IHDR", b"PLTE"):
            kept.append(encoded[start:end])
        elif kind == b"IDAT":
            pixels.append(encoded[start + CHUNK.size : end - 4])
    kept += [chunk(b"IDAT", b"".join(pixels)), chunk(b"IEND", b"")]
    return b"".join(kept)


def unseen(encoded: bytes) -> Unseen:
    """Read depth and kind of colours, the Exif chunk, and the number of frames of an animation."""
    orientation, frames = 0, 1
    depth, colours = encoded[DEPTH : DEPTH + 2]
    alpha = colours in WITH_ALPHA
    usual = len(encoded) // 256 + 100  # more than any encoder writes
    for kind, start, end in islice(chunks(encoded), usual):
        if kind == b"eXIf" and not orientation:
            orientation = of_exif(encoded[start + CHUNK.size : end - 4])
        elif kind == b"acTL":
            [frames] = struct.unpack_from(">I", encoded, start + CHUNK.size)
        elif kind == b"tRNS":
            alpha = True
    return Unseen(orientation or 1, frames > 1, alpha, grey16=colours == GREY and depth > 8)


def chunks(encoded: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of each chunk.  Raises `ImageError` if there are too many."""
    start = len(SIGNATURE)
    for _ in range(MAX_CHUNKS):
        if start + CHUNK.size > len(encoded):
            return
        length, kind = CHUNK.unpack_from(encoded, start)
        end = start + length + AROUND
        yield kind, start, end
        if kind == b"IEND":
            return
        start = end
    raise ImageError(f"the PNG image has more than {MAX_CHUNKS} chunks")


def chunk(kind: bytes, data: bytes) -> bytes:
    """Build a chunk."""
    return CHUNK.pack(len(data), kind) + data + zlib.crc32(data, zlib.crc32(kind)).to_bytes(4, "big")


PNG = Format("PNG", starts(SIGNATURE), header_of, plain, unseen=unseen)
