"""`orient`: pictures whose EXIF orientation says that they are stored lying on their side."""

import pytest

from tests.app.web.test_orientation import CODED, PHONE, STORED, UPRIGHT, looks, posted
from tests.support.films import film
from tests.support.pictures import b64, item
from tests.support.turned import turned

pytestmark = pytest.mark.anyio


async def test_each_frame_is_turned_and_one_warning_tells_of_all(serve, fakes):
    """Those of a list, one by one or as cells of a grid, and those of an animation."""
    listed = [b64(PHONE), b64(turned("JPEG"))]
    moving = b64(film("WEBP", size=(16, 8), exif=b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\x06" + bytes(6)))
    grid = {"options": {"vqascore": {"frames": "grid"}}}
    mean = {"options": {"vqascore": {"frames": "mean"}}}
    bodies = [
        {"items": [item(image=listed)]},
        {"items": [item(image=listed)], **grid},
        {"items": [item(image=moving)], **mean},
    ]
    async with serve() as client:
        stored = [await posted(client, body) for body in bodies]
        before = len(looks(fakes))
        upright = [await posted(client, body | {"orient": "exif"}) for body in bodies]

    assert [[CODED]] * 3 == [answer["warning_codes"] for answer in stored]
    assert not any("warnings" in answer for answer in upright)
    assert sorted([STORED] * 5 + [(32, 16)]) == sorted(looks(fakes)[:before])
    assert sorted([UPRIGHT] * 5 + [(16, 32)]) == sorted(looks(fakes)[before:])
