"""PNG.  https://www.w3.org/TR/png-3/"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from models.images.formats.contract import Format, Header, ImageError, Unseen, header
from models.images.formats.icc import MAX_PROFILE_BYTES, is_other
from models.images.formats.tiff import of_exif

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHUNK = struct.Struct(">I4s")  # length of the data, kind
CHUNK_OVERHEAD = CHUNK.size + 4  # the head of a chunk, and its checksum
DEPTH_OFFSET = 24  # the bits of a colour stand there, and then the kind of colours
GREY_KIND, ALPHA_KINDS = 0, (4, 6)
MAX_CHUNKS = 20_000  # 32 MiB in chunks of 4 kB are 8,000
MAX_TRANSPARENT_BYTES = 256  # each colour of a palette has one


def header_of(encoded: bytes) -> Header:
    """Read the size from the first chunk."""
    if encoded[12:16] != b"IHDR":
        raise ImageError("the PNG image has no header")
    width, height = struct.unpack_from(">II", encoded, 16)
    return header("PNG", width, height)


def plain(encoded: bytes) -> bytes:
    """
    Keep the header, the palette, its transparent colours and the pixels.

    Texts and profiles may be compressed.  Of an animation, the picture for viewers without animations
    remains.
    """
    kept, pixels = [SIGNATURE], []
    for kind, start, end in chunks(encoded):
        if kind in (b"IHDR", b"PLTE") or (
            kind == b"tRNS" and end - start <= MAX_TRANSPARENT_BYTES + CHUNK_OVERHEAD
        ):
            kept.append(encoded[start:end])
        elif kind == b"IDAT":
            pixels.append(encoded[start + CHUNK.size : end - 4])
    kept += [chunk(b"IDAT", b"".join(pixels)), chunk(b"IEND", b"")]
    return b"".join(kept)


def unseen(encoded: bytes) -> Unseen:
    """
    Read depth and kind of colours, the Exif chunk and the profile, and the number of frames of an animation.

    Without a frame's control before the pixels, these are not part of the animation.
    """
    orientation, frames, controlled, apart, profile = 0, 1, False, False, None
    depth, colours = encoded[DEPTH_OFFSET : DEPTH_OFFSET + 2]
    alpha = colours in ALPHA_KINDS
    usual = len(encoded) // 256 + 100  # more than any encoder writes
    for kind, start, end in islice(chunks(encoded), usual):
        if kind == b"eXIf" and not orientation:
            orientation = of_exif(encoded[start + CHUNK.size : end - 4])
        elif kind == b"acTL":
            [frames] = struct.unpack_from(">I", encoded, start + CHUNK.size)
            apart = not controlled
        elif kind == b"fcTL":
            controlled = True
        elif kind == b"IDAT":
            apart &= not controlled
            controlled = True  # later ones are of other frames
        elif kind == b"tRNS":
            alpha = True
        elif kind == b"iCCP" and profile is None:
            profile = profile_in(encoded[start + CHUNK.size : end - 4])
    grey16 = colours == GREY_KIND and depth > 8
    return Unseen(
        orientation or 1, frames + apart > 1, alpha, grey16, profile is not None and is_other(profile)
    )


def profile_in(data: bytes) -> bytes:
    """Inflate the beginning of a profile: behind its name, a zero, and the method of compression."""
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data[data.index(0) + 2 :], MAX_PROFILE_BYTES)
    return b""


def chunks(encoded: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of each chunk.  Raises `ImageError` if there are too many."""
    start = len(SIGNATURE)
    for _ in range(MAX_CHUNKS):
        if start + CHUNK.size > len(encoded):
            return
        length, kind = CHUNK.unpack_from(encoded, start)
        end = start + length + CHUNK_OVERHEAD
        yield kind, start, end
        if kind == b"IEND":
            return
        start = end
    raise ImageError(f"the PNG image has more than {MAX_CHUNKS} chunks")


def chunk(kind: bytes, data: bytes) -> bytes:
    """Build a chunk."""
    return CHUNK.pack(len(data), kind) + data + zlib.crc32(data, zlib.crc32(kind)).to_bytes(4, "big")


PNG = Format("PNG", (SIGNATURE,), header_of, plain, unseen=unseen)
