"""Which hosts pictures are fetched from."""

import pytest

from service.core.settings.sections import host_and_port, is_listed

LISTED = ["images.example.org", "CDN.example.org:8443", "[2606:4700::1111]:80"]


@pytest.mark.parametrize(
    ("scheme", "host", "port"),
    [
        ("https", "images.example.org", None),
        ("http", "IMAGES.example.org", None),
        ("https", "images.example.org", 443),
        ("https", "cdn.example.org", 8443),
        ("http", "2606:4700::1111", None),
    ],
)
def test_a_listed_host_is_allowed_with_its_port(scheme, host, port):
    """Without one, the scheme's own; whatever the case."""
    assert is_listed(LISTED, scheme, host, port)


@pytest.mark.parametrize(
    ("scheme", "host", "port"),
    [
        ("https", "example.org", None),
        ("https", "images.example.org.evil.org", None),
        ("https", "evil-images.example.org", None),
        ("https", "images.example.org", 8443),
        ("https", "images.example.org", 80),
        ("https", "cdn.example.org", None),
        ("ftp", "images.example.org", None),
        ("file", "", None),
        ("https", "", None),
    ],
)
def test_nothing_else_is_allowed(scheme, host, port):
    """No part of a listed name, no other port, and no other scheme."""
    assert not is_listed(LISTED, scheme, host, port)


@pytest.mark.parametrize(
    "entry",
    ["", "https://images.example.org", "a/b", "a b", "user@a", "a:x", "*", "a:123456", "a:99999", "a:0"],
)
def test_an_entry_that_is_no_host_is_refused(entry):
    """With an example of one."""
    with pytest.raises(ValueError, match=r"images\.example\.org:8443"):
        host_and_port(entry)
