"""Transparency, and grey of more than 8 bits, read from the file's header without decoding."""

import io

import numpy as np
import PIL.Image
import pytest

from models.images.formats.contract import Unseen
from models.images.image import Image
from tests.support.pictures import saved

RGB = PIL.Image.new("RGB", (9, 7), (20, 120, 220))
RGBA = RGB.convert("RGBA")
RGBA.putpixel((0, 0), (0, 0, 0, 0))
GREY16 = PIL.Image.fromarray(np.full((7, 9), 3000, np.uint16))


def with_a_colour(format):
    """A palette of which one colour is transparent."""
    return saved(RGB.quantize(4), format, transparency=0)


def bitmap():
    """A BMP with a mask of alpha, which Pillow reads and does not write."""
    buffer = io.BytesIO()
    RGBA.save(buffer, "BMP")
    pixels = buffer.getvalue()[-9 * 7 * 4 :]
    masks = b"".join(mask.to_bytes(4, "little") for mask in (0xFF0000, 0xFF00, 0xFF, 0xFF000000))
    numbers = b"".join(n.to_bytes(4, "little") for n in (56, 9, 7))
    rest = b"\1\0\x20\0" + b"".join(n.to_bytes(4, "little") for n in (3, 0, 0, 0, 0, 0)) + masks
    return (
        b"BM" + (70 + len(pixels)).to_bytes(4, "little") + bytes(4) + b"\x46\0\0\0" + numbers + rest + pixels
    )


ALPHA = {
    "PNG": saved(RGBA, "PNG"),
    "PNG, grey": saved(RGBA.convert("LA"), "PNG"),
    "PNG, a colour": with_a_colour("PNG"),
    "GIF": with_a_colour("GIF"),
    "WEBP": saved(RGBA, "WEBP"),
    "WEBP, lossless": saved(RGBA, "WEBP", lossless=True),
    "AVIF": saved(RGBA, "AVIF"),
    "TIFF": saved(RGBA, "TIFF"),
    "BMP": bitmap(),
}
OPAQUE = {
    **{format: saved(RGB, format) for format in ("PNG", "JPEG", "GIF", "WEBP", "AVIF", "TIFF", "BMP")},
    "WEBP, lossless": saved(RGB, "WEBP", lossless=True),
    "PNG, grey": saved(RGB.convert("L"), "PNG"),
    "PNG, a palette": saved(RGB.quantize(4), "PNG"),
    "TIFF, one bit": saved(RGB.convert("1"), "TIFF"),
}


@pytest.mark.parametrize("encoded", ALPHA.values(), ids=ALPHA)
def test_transparency_is_found_in_each_format(encoded):
    """And Pillow has it, too."""
    with PIL.Image.open(io.BytesIO(encoded)) as picture:
        assert picture.has_transparency_data
    assert Unseen(alpha=True) == Image(encoded).unseen


@pytest.mark.parametrize("encoded", OPAQUE.values(), ids=OPAQUE)
def test_an_opaque_picture_of_8_bits_shows_everything(encoded):
    assert Unseen() == Image(encoded).unseen


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_grey_of_more_than_8_bits_is_found(format):
    """Its pixels are white: 3000 of 65535."""
    encoded = saved(GREY16, format)

    assert Unseen(grey16=True) == Image(encoded).unseen
    if format == "PNG":  # a TIFF is decoded in another process
        assert (255, 255, 255) == Image(encoded).rgb.getpixel((0, 0))


def test_grey_of_floating_point_numbers_is_found():
    """Those from 0 to 1 are black."""
    encoded = saved(PIL.Image.fromarray(np.full((7, 9), 0.5, np.float32)), "TIFF")

    assert Unseen(grey16=True) == Image(encoded).unseen
