"""Warnings of scores that go out in formats without a place for them."""

import logging

import pytest

from tests.support.films import film
from tests.support.pictures import b64
from tests.support.turned import turned

pytestmark = pytest.mark.anyio


async def test_each_kind_of_warning_is_logged_once_and_counted_always(dialects, caplog):
    """In whichever dialect it comes up; the log quotes none of it."""
    caplog.set_level(logging.WARNING)
    async with dialects() as apps:
        for _ in range(2):
            body = {"prompt": ["a red square"] * 2, "image": [b64(film()), b64(turned())]}
            assert 200 == (await apps.private.post("/compute", json=body)).status_code
        wanted = {"images": [film()], "prompts": ["a blue square"]}
        assert 200 == (await apps.unpickled(wanted))[0]
        shown = (await apps.main.get("/metrics")).text

    logged = [record for record in caplog.records if record.name == "scoregate.dialects"]
    assert ["frames_ignored", "image_rotated_by_exif"] == [record.code for record in logged]
    assert not any("square" in record.getMessage() for record in logged)
    assert 'scoregate_warnings_total{code="frames_ignored"} 3.0' in shown
    assert 'scoregate_warnings_total{code="image_rotated_by_exif"} 2.0' in shown


async def test_a_dialect_turns_pictures_where_the_settings_say_so(dialects, fakes):
    """Its requests have no field for it."""
    async with dialects(images={"orient": "exif"}) as apps:
        body = {"prompt": ["a red square"], "image": [b64(turned())]}
        assert 200 == (await apps.private.post("/compute", json=body)).status_code
        shown = (await apps.main.get("/metrics")).text

    assert [(8, 16)] == [call.image.size for call in fakes["vqa"].calls]
    assert 'scoregate_warnings_total{code="image_rotated_by_exif"} 0.0' in shown
