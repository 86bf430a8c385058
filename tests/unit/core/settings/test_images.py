"""The settings of images."""

import sys

import pytest
from pydantic import ValidationError

from models.images.formats.mp4 import MP4_PACKAGE
from service.core.settings.sections import Images


def test_formats_are_named_in_any_case():
    """As they are written otherwise."""
    assert ["JPEG", "TIFF"] == Images(formats=["jpeg", "Tiff"]).formats


def test_without_a_list_all_are_read_that_generators_write(monkeypatch):
    """Videos if their decoder is installed."""
    usual = ["JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF"]
    assert [*usual, "MP4"] == Images().formats

    monkeypatch.setitem(sys.modules, MP4_PACKAGE, None)
    assert usual == Images().formats


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"formats": ["JPEG", "EPS"]}, "EPS: not among JPEG"),
        ({"formats": []}, "at least 1"),
        ({"allow_urls": True}, "at least one host"),
        ({"allow_urls": True, "allowed_url_hosts": ["https://example.org/"]}, "is no host"),
        ({"url_timeout_s": 0}, "greater than 0"),
    ],
)
def test_what_cannot_be_meant_ends_the_start(table, why):
    """A list of hosts is needed where images are fetched: there is no leave for all."""
    with pytest.raises(ValidationError, match=why):
        Images.model_validate(table)
