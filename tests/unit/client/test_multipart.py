"""What the client writes is what the service's own parser reads."""

import pytest

from scoregate.items import Files
from service.web.server.multipart import Form


@pytest.mark.parametrize("data", [b"", b"\r\n--", b"\r\n", bytes(range(256)) * 300])
def test_the_service_reads_the_form(data):
    """Whatever bytes a picture has; text in any script."""
    files = Files()
    files.parts |= {"image0": data, "image1": b"x"}
    kind, content = files.body({"prompt": "größe 猫"})
    read = Form(kind, max_files=2)
    read.feed(content)

    assert (b'{"prompt": "gr\\u00f6\\u00dfe \\u732b"}', {"image0": data, "image1": b"x"}) == read.read()


def test_a_number_that_is_not_finite_is_not_sent():
    """It would not be JSON."""
    with pytest.raises(ValueError, match="JSON"):
        Files().body({"options": {"gecko": {"nli_threshold": float("nan")}}})
