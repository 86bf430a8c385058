"""Animations by URL, which are decoded in a process."""

import pytest

from tests.app.web.test_urls import images, parts, server, url
from tests.support.films import film
from tests.support.pictures import b64, item

__all__ = ["images", "parts", "server"]

pytestmark = pytest.mark.anyio


async def test_an_animation_by_url_counts_as_its_frames(serve, server, images):
    """As its bytes do."""
    server.expect_request("/moving.gif").respond_with_data(film())
    asked = {"options": {"vqascore": {"frames": "grid", "samples": 2}}, "explain": True}
    async with serve(images=images) as client:
        items = [item(image=url(server, "/moving.gif")), item(image=b64(film()))]
        named, sent = (await client.post("/score", json={"items": items, **asked})).json()["results"]

    assert named["scores"] == sent["scores"]
    assert 3 == named["details"]["vqascore"]["frames_given"]
