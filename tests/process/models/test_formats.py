"""Formats: what a header tells is what the decoder sees, and what is left out decides no pixel."""

import io
import random
import struct
from contextlib import suppress

import numpy as np
import PIL.Image
import pytest

from models.images.formats.contract import ImageError
from models.images.formats.decode import decode
from models.images.formats.mp4 import MP4
from models.images.formats.registry import FORMATS, plain, read_header
from tests.support.bombs import (
    chunk,
    exif,
    flat,
    gif,
    run_length_bmp,
    saved,
    segment,
    with_chunks,
    with_segments,
)

pytestmark = pytest.mark.filterwarnings("ignore:::PIL")  # as `models.formats` does, but pytest resets filters


def noise(mode: str = "RGB", size: tuple[int, int] = (45, 31)) -> PIL.Image.Image:
    """Every pixel different."""
    pixels = np.random.default_rng(3).integers(0, 256, (size[1], size[0], 3), np.uint8)
    picture = PIL.Image.fromarray(pixels)
    return picture.quantize(64) if mode == "P" else picture.convert(mode)


def see_through(format: str, **options) -> bytes:
    picture = noise("RGBA")
    picture.putalpha(noise("L"))
    return saved(picture, format, **options)


def frames(format: str, **options) -> bytes:
    first, second = noise(), noise().rotate(180)
    return saved(first, format, save_all=True, append_images=[second], **options)


def corner() -> bytes:
    """A GIF whose frame leaves most of the screen out."""
    whole = bytearray(saved(noise("P"), "GIF", transparency=3))
    struct.pack_into("<HH", whole, 6, 90, 70)
    return bytes(whole)


TURNED = PIL.Image.Exif()
TURNED[0x0112] = 6  # by 90 degrees
PROFILE = bytes(range(256)) * 300

FILES = {
    "JPEG": saved(noise(), "JPEG"),
    "JPEG in several scans": saved(noise(), "JPEG", progressive=True, quality=95),
    "JPEG without subsampling": saved(noise(), "JPEG", progressive=True, subsampling=0),
    "JPEG in grey": saved(noise("L"), "JPEG"),
    "JPEG in CMYK": saved(noise("CMYK"), "JPEG"),
    "JPEG in RGB, told by Adobe's mark": saved(noise(), "JPEG", keep_rgb=True),
    "JPEG with restarts": saved(noise(), "JPEG", restart_marker_blocks=1),
    "JPEG with metadata": saved(noise(), "JPEG", exif=TURNED, icc_profile=PROFILE, comment=b"a" * 999),
    "JPEG between bytes": with_segments(saved(noise(), "JPEG"), b"\xff\xff\0", 30) + b"\xff\xd8\xff",
    "PNG": saved(noise(), "PNG"),
    "PNG in grey": saved(noise("LA"), "PNG"),
    "PNG in black and white": saved(noise("1"), "PNG"),
    "PNG of 16 bits": saved(noise("I;16"), "PNG"),
    "PNG with a palette": saved(noise("P"), "PNG", transparency=bytes(range(64))),
    "PNG with alpha": see_through("PNG"),
    "PNG with metadata": saved(noise(), "PNG", exif=TURNED, icc_profile=PROFILE),
    "PNG in many pieces": with_chunks(saved(noise(), "PNG"), chunk(b"IDAT", b"") * 50),
    "PNG that moves": frames("PNG"),
    "GIF": saved(noise("P"), "GIF"),
    "GIF in grey": saved(noise("L"), "GIF"),
    "GIF, interlaced": saved(noise("P"), "GIF", interlace=True),
    "GIF with a comment": saved(noise("P"), "GIF", comment=b"a" * 999),
    "GIF with transparency": saved(noise("P"), "GIF", transparency=3),
    "GIF whose frame is smaller": corner(),
    "GIF that moves": frames("GIF", disposal=2),
    "WEBP": saved(noise(), "WEBP"),
    "WEBP with metadata": saved(noise(), "WEBP", exif=TURNED, icc_profile=PROFILE),
    "WEBP, lossless": saved(noise(), "WEBP", lossless=True),
    "WEBP with alpha": see_through("WEBP"),
    "WEBP that moves": frames("WEBP"),
    "BMP": saved(noise(), "BMP"),
    "BMP with a palette": saved(noise("P"), "BMP"),
    "BMP in black and white": saved(noise("1"), "BMP"),
    "BMP with alpha": see_through("BMP"),
    "AVIF": saved(noise(), "AVIF"),
    "AVIF with alpha": see_through("AVIF", exif=TURNED),
    "AVIF that moves": frames("AVIF"),
    "TIFF": saved(noise(), "TIFF"),
    "TIFF of 16 bits": saved(noise("I;16"), "TIFF"),
    "TIFF of floats": saved(noise("F"), "TIFF", compression="tiff_deflate"),
    "TIFF in CMYK": saved(noise("CMYK"), "TIFF", compression="tiff_lzw"),
    "TIFF in JPEG": saved(noise(), "TIFF", compression="jpeg"),
    "TIFF, large": saved(noise(), "TIFF", big_tiff=True),
    "TIFF of two pages": frames("TIFF"),
}


@pytest.mark.parametrize("encoded", FILES.values(), ids=FILES)
def test_a_picture_has_the_size_and_the_pixels_that_pillow_gives_the_whole_file(encoded):
    """What the header says is enough to count by, and what was left out decides nothing."""
    with PIL.Image.open(io.BytesIO(encoded)) as reference:
        reference.load()
        reference.info.pop("transparency", None)
        expected = reference.convert("RGB")
    header = read_header(encoded)

    assert (expected.size, reference.format) == ((header.width, header.height), header.format)
    decoded = decode(encoded)
    assert expected.tobytes() == decoded.tobytes()
    assert type(decoded) is PIL.Image.Image, "no file stays open"


@pytest.mark.parametrize("format", [name for name in FORMATS if name != MP4.name])
@pytest.mark.parametrize("turn", range(2, 9))
def test_orientation_is_ignored_whatever_the_format(format, turn):
    """A picture that says that it is turned or mirrored has the pixels of one that does not."""
    says = PIL.Image.Exif()
    says[0x0112] = turn
    straight, turned = saved(noise(), format), saved(noise(), format, exif=says)

    assert (45, 31) == decode(turned).size
    assert decode(straight).tobytes() == decode(turned).tobytes()


def test_orientation_in_xmp_is_ignored_as_well():
    """Pillow looks there, too."""
    xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    turned = saved(noise(), "TIFF", tiffinfo={700: xmp})

    assert noise().tobytes() == decode(turned).tobytes()


WITH_METADATA = {
    "comments": with_segments(saved(noise(), "JPEG"), segment(0xFE, b"a" * 60_000), 10**6),
    "Exif": with_segments(saved(noise(), "JPEG"), exif(2000), 10**6),
    "a thumbnail": with_segments(saved(noise(), "JPEG"), segment(0xE0, b"JFXX\0" + b"a" * 60_000), 10**6),
    "texts": with_chunks(saved(noise(), "PNG"), chunk(b"tEXt", b"a\0" + b"b" * 10**6)),
    "a profile": saved(noise(), "PNG", icc_profile=bytes(10**6)),
    "a GIF's comment": saved(noise("P"), "GIF", comment=b"a" * 10**6),
    "a WebP's chunks": saved(noise(), "WEBP") + b"EXIF\x40\x42\x0f\0" + bytes(10**6),
}


@pytest.mark.parametrize("encoded", WITH_METADATA.values(), ids=WITH_METADATA)
def test_metadata_never_reaches_a_decoder(encoded):
    """However much of it there is."""
    assert len(plain(encoded)) < 20_000


@pytest.mark.parametrize("encoded", FILES.values(), ids=FILES)
def test_a_file_that_breaks_off_anywhere_is_an_image_error(encoded):
    """Or a picture, where only metadata was lost."""
    for end in [*range(80), *range(80, len(encoded), 1 + len(encoded) // 40)]:
        with suppress(ImageError):
            read_header(encoded[:end])
            plain(encoded[:end])


@pytest.mark.parametrize("encoded", FILES.values(), ids=FILES)
def test_a_mutated_file_is_a_picture_or_an_image_error(encoded):
    """Whatever is wrong with it."""
    chance = random.Random(5)
    for _ in range(25):
        mutated = bytearray(encoded)
        for _ in range(chance.choice([1, 3, 20])):
            mutated[chance.randrange(min(len(mutated), 400))] = chance.randrange(256)
        with suppress(ImageError):
            header = read_header(bytes(mutated))
            if header.width * header.height < 10**6:
                decode(bytes(mutated))


JPEG, PNG = flat(16, 16, "JPEG"), flat(16, 16, "PNG")

REFUSED = {
    "a BMP of runs": (run_length_bmp(300, 300), "run-length"),
    "a JPEG of many segments": (with_segments(JPEG, segment(0xE5, b""), 8 * 2**20), "segments"),
    "a JPEG of many tables": (with_segments(JPEG, segment(0xDB, b"\0" * 65_000), 8 * 2**20), "tables"),
    "a JPEG of two frames": (with_segments(JPEG, JPEG[JPEG.index(b"\xff\xc0") :][:19], 19), "no frame"),
    "a PNG of many chunks": (with_chunks(PNG, chunk(b"teXt", b"") * 30_000), "chunks"),
    "a GIF of many blocks": (gif((9, 9))[:19] + b"!\xfe" + b"\1a" * 10**6 + gif((9, 9))[19:], "first frame"),
    "nothing to see": (struct.pack("<6sHHBBB", b"GIF89a", 0, 9, 0, 0, 0) + gif((0, 9))[13:], "no pixels"),
}


@pytest.mark.parametrize(("encoded", "why"), REFUSED.values(), ids=REFUSED)
def test_what_no_generator_writes_is_refused_before_it_is_decoded(encoded, why):
    """In words that say what it is."""
    with pytest.raises(ImageError, match=why):
        read_header(encoded), plain(encoded)


def test_a_picture_in_several_scans_counts_its_coefficients():
    """The decoder keeps all of them until the last scan has been read."""
    counted = {
        name: read_header(FILES[name]).memory
        for name in ("JPEG", "JPEG in several scans", "JPEG without subsampling")
    }

    assert 8 * 45 * 31 == counted["JPEG"]
    assert 4 * 45 * 31 + 6 * 48 * 32 == counted["JPEG without subsampling"]
    assert counted["JPEG in several scans"] == 8 * 45 * 31
