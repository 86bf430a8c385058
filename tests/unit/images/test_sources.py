"""Where the bytes of a picture come from, and what is said where something else was sent."""

import pytest

from service.core.errors import NotBase64
from service.images.loader import unbase64

PATH = "this looks like a file's path; send the file's bytes"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("/data/images/cat.png", PATH),
        ("cat.jpeg", PATH),
        ("./cat", PATH),
        ("~/cat", PATH),
        ("file:///data/cat", PATH),
        ("C:\\images\\cat.png", PATH),
        ("https://example.com/cat.png", 'this looks like a URL; give it as {"url": "…"}'),
        ("a red circle", "this looks like words; the prompt has a field of its own"),
        ("aGk", "the image is not base64"),
        ("aGk=\n", "the image is not base64"),
    ],
)
def test_what_stands_in_the_place_of_base64_gets_a_hint(text, hint):
    """A path, a URL or a prompt; the text itself is not repeated."""
    with pytest.raises(NotBase64) as wrong:
        unbase64(text)
    assert wrong.value.detail.endswith(hint)
    assert text not in wrong.value.detail
