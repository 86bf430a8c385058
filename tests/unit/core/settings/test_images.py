"""The settings of images."""

import pytest
from pydantic import ValidationError

from service.core.settings.sections import Images


def test_formats_are_named_in_any_case():
    """As they are written otherwise."""
    assert ["JPEG", "TIFF"] == Images(formats=["jpeg", "Tiff"]).formats


@pytest.mark.parametrize("videos", [["MP4"], []])
def test_without_a_list_all_are_read_that_generators_write(monkeypatch, videos):
    """Videos if their decoder is installed."""
    monkeypatch.setattr(
        "service.core.settings.sections.find_spec", lambda package: package if videos else None
    )

    assert ["JPEG", "PNG", "WEBP", "GIF", "BMP", "AVIF", *videos] == Images().formats


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
