"""What it costs to read a file's orientation and frames."""

import struct
import time
import zlib
from collections.abc import Callable

import pytest

from models.images.formats.registry import read_unseen
from tests.process.models.test_orientation import exif, noise
from tests.support.bombs import chunk, segment, with_chunks, with_segments
from tests.support.films import box
from tests.support.pictures import saved

TAGS = struct.pack("<4sIH", b"II*\0", 8, 9_000) + struct.pack("<HHII", 1, 3, 1, 0) * 9_000
NESTED = box(b"meta", bytes(4), box(b"iprp", box(b"ipco", *[box(b"free", b"x")] * 9_000)))
PROFILE = b"p\0\0" + zlib.compress(bytes(2**26))
HOSTILE = {
    "a PNG of many chunks": with_chunks(saved(noise(), "PNG"), chunk(b"teXt", b"") * 19_000),
    "a PNG of Exif data": with_chunks(saved(noise(), "PNG"), chunk(b"eXIf", TAGS) * 20),
    "a WebP of Exif data": saved(noise(), "WEBP", exif=exif(6))
    + (b"EXIF" + struct.pack("<I", len(TAGS)) + TAGS) * 20,
    "a JPEG of Exif data": with_segments(
        saved(noise(), "JPEG"), segment(0xE1, b"Exif\0\0" + TAGS[:65_000]), 10**6
    ),
    "a PNG of profiles": with_chunks(saved(noise(), "PNG"), chunk(b"iCCP", PROFILE) * 20),
    "a JPEG of a profile in many parts": with_segments(
        saved(noise(), "JPEG"), segment(0xE2, b"ICC_PROFILE\0\1\1" + b"\xff" * 900), 10**6
    ),
    "an AVIF of boxes": saved(noise(), "AVIF")[:32] + NESTED * 20,
    "a GIF of small blocks": saved(noise(), "GIF")[:-1] + b"!\xfe" + b"\1a" * 99_000 + b"\0;",
}


@pytest.mark.parametrize("encoded", HOSTILE.values(), ids=HOSTILE)
def test_what_a_file_says_is_read_at_little_cost(encoded):
    """No more than a few times that of a loop over its bytes, which is as much faster on a faster machine."""
    read_s = min(cost(lambda: read_unseen(encoded)) for _ in range(5))
    loop_s = min(cost(lambda: sum(encoded)) for _ in range(5))

    assert read_s < 4 * loop_s


def cost(work: Callable[[], object]) -> float:
    """CPU seconds."""
    began = time.process_time()
    work()
    return time.process_time() - began
