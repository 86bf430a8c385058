"""Small picture files that ask a careless decoder for much memory or time."""

import struct
import zlib
from typing import Any

import PIL.Image

from tests.support.pictures import saved


def flat(width: int, height: int, format: str, mode: str = "RGB", **options: Any) -> bytes:
    """A picture of one colour: few bytes, and all of its pixels."""
    return saved(PIL.Image.new(mode, (width, height), 1), format, **options)


def gif(frame: tuple[int, int], screen: tuple[int, int] = (1, 1), disposal: int = 2) -> bytes:
    """43 bytes: a GIF whose frame is larger than its screen, and is to be disposed of."""
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", *screen, 0x80, 0, 0)
        + b"\x01\x01\x01\xff\xff\xff"
        + bytes([0x21, 0xF9, 4, disposal << 2, 0, 0, 0, 0])
        + struct.pack("<BHHHHB", 0x2C, 0, 0, *frame, 0)
        + b"\x02\x02D\x01\x00;"
    )


def run_length_bmp(width: int, height: int) -> bytes:
    """A BMP of two bytes for each 255 pixels."""
    rows = (b"\xff\x01" * (width // 255) + bytes([width % 255, 1]) + b"\0\0") * height
    head = struct.pack("<IIIHHIIiiII", 40, width, height, 1, 8, 1, len(rows), 0, 0, 256, 0)
    palette = b"".join(bytes([n, 255 - n, n, 0]) for n in range(256))
    start = 14 + len(head) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + head + palette + rows


def with_segments(jpeg: bytes, segment: bytes, size: int) -> bytes:
    """A JPEG with *size* bytes of the same segment before all others."""
    return jpeg[:2] + segment * (size // len(segment)) + jpeg[2:]


def segment(mark: int, data: bytes) -> bytes:
    """A segment of a JPEG."""
    return b"\xff" + bytes([mark]) + struct.pack(">H", len(data) + 2) + data


def exif(entries: int) -> bytes:
    """An Exif segment with that many entries, each of which names the same 32 kB."""
    directory = b"".join(struct.pack("<HHII", 700 + n, 1, 32_000, 8) for n in range(entries))
    return segment(0xE1, b"Exif\0\0II*\0" + struct.pack("<IH", 8, entries) + directory + bytes(32_000))


def many_scans(jpeg: bytes, scans: int) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    last = jpeg.rindex(b"\xff\xda")
    return jpeg[:-2] + jpeg[last:-2] * scans + jpeg[-2:]


def lying_avif(width: int, height: int, says: tuple[int, int]) -> bytes:
    """An AVIF whose container says another size than its pictures."""
    honest = flat(width, height, "AVIF", speed=10)
    sizes = struct.pack(">II", width, height)
    assert sizes in honest
    return honest.replace(sizes, struct.pack(">II", *says))


def tiled_tiff(side: int, says: tuple[int, int]) -> bytes:
    """A TIFF with one deflated tile that is larger than the picture."""
    packed = zlib.compress(bytes(side * side), 9)
    tags = [(256, says[0]), (257, says[1]), (258, 8), (259, 8), (262, 1), (277, 1)]
    tags += [(322, side), (323, side), (324, 0), (325, len(packed))]
    end = 8 + 2 + 12 * len(tags) + 4
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value or end) for tag, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + directory + bytes(4) + packed


def chunk(kind: bytes, data: bytes) -> bytes:
    """A PNG chunk."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def with_chunks(png: bytes, chunks: bytes) -> bytes:
    """A PNG with more chunks after its header."""
    return png[:33] + chunks + png[33:]


def packed_text(size: int) -> bytes:
    """A PNG chunk whose text unpacks to *size* bytes."""
    return chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(size), 9))
