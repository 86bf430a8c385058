"""Pictures inside a page: small, or as they are, or none."""

import base64
import io
import sys

import PIL.Image
import pytest

from scoregate.report import html
from tests.support.pictures import png, saved


def test_a_picture_becomes_a_small_jpeg():
    """At most 256 pixels on a side."""
    kind, _, data = html.data_uri(png("red", (1000, 500), "RGBA")).partition(";base64,")

    assert "data:image/jpeg" == kind
    assert (256, 128) == PIL.Image.open(io.BytesIO(base64.b64decode(data))).size


@pytest.mark.parametrize("data", [b"", b"<svg/>", png()[:40]])
def test_what_cannot_be_read_is_not_shown(data):
    """Nor is anything that is no picture of pixels."""
    assert "" == html.data_uri(data)


def test_a_picture_of_too_many_pixels_is_not_decoded():
    """Its header says how many there are."""
    data = png(size=(16, 16))

    assert b"" == html.thumbnail(data, pixels=15 * 16)
    assert html.thumbnail(data, pixels=16 * 16)


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "AVIF"])
def test_without_pillow_the_original_is_shown(monkeypatch, format):
    """By its first bytes, whatever its name; what no browser shows is left out."""
    data = saved(PIL.Image.new("RGB", (16, 16)), format)
    monkeypatch.setitem(sys.modules, "PIL", None)

    assert f"data:image/{format.lower()};base64,{base64.b64encode(data).decode()}" == html.data_uri(data)
    assert "" == html.data_uri(b"<svg/>")
