"""What an answer warns of pictures that are decoded in a process."""

import pytest

from tests.app.web.test_warnings import MEAN, answered
from tests.support.films import film
from tests.support.pictures import b64, item

pytestmark = pytest.mark.anyio

FORMATS = ("GIF", "PNG", "WEBP", "AVIF", "TIFF")
ALL = {"formats": [*FORMATS, "JPEG"]}


@pytest.mark.parametrize("format", FORMATS)
async def test_a_picture_scored_by_its_first_frame_has_a_warning(serve, format):
    """Whatever the format; a still one beside it has none."""
    async with serve(images=ALL) as client:
        answer = await answered(client, {"items": [item(), item(image=b64(film(format)))]})

    told = "item 1, vqascore: the image has several frames; only the first was scored"
    assert [told] == answer["warnings"]
    assert [{"code": "frames_ignored", "item": 1, "metric": "vqascore"}] == answer["warning_codes"]


@pytest.mark.parametrize(
    ("format", "codes"),
    [("GIF", []), ("WEBP", []), ("PNG", ["frames_ignored"]), ("TIFF", ["frames_ignored"])],
)
async def test_where_the_request_says_what_becomes_of_frames_only_those_not_read_are_warned_of(
    serve, format, codes
):
    """The frames of an APNG and the pages of a TIFF are not read here."""
    async with serve(images=ALL) as client:
        answer = await answered(client, {"items": [item(image=b64(film(format)))], **MEAN})

    assert codes == [each["code"] for each in answer.get("warning_codes", [])]
