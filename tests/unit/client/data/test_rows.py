"""Rows of data sets: pictures of formats that are converted before they are sent."""

import sys
from types import SimpleNamespace

import PIL.Image
import pytest

from scoregate.data import rows
from scoregate.data.rows import kind_of
from tests.support.pictures import png

HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"


def test_heic_is_sent_as_its_pixels(monkeypatch):
    """Any other file is sent as it is."""
    opened = SimpleNamespace(to_pillow=lambda: PIL.Image.new("RGB", (4, 4), "red"))
    monkeypatch.setitem(sys.modules, "pillow_heif", SimpleNamespace(open_heif=lambda data: opened))

    assert "bmp" == kind_of(rows.readable(HEIC))
    assert png() == rows.readable(png())


def test_broken_heic_is_an_error(monkeypatch):
    """In one line, whatever its reader prints."""

    def broken(data):
        raise EOFError("the end\n")

    monkeypatch.setitem(sys.modules, "pillow_heif", SimpleNamespace(open_heif=broken))
    with pytest.raises(ValueError, match=r"^is HEIC that cannot be read: the end$"):
        rows.readable(HEIC)
