"""What requests hold while they are answered: each byte once."""

import tracemalloc

import pytest

from tests.support.large_bodies import MB, built, form, request, waiting

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("sent", [{"json": request(6 * MB)}, {"files": form(6 * MB)}])
async def test_a_request_that_waits_holds_its_picture_once(serve, fakes, sent):
    """Neither the raw body nor the base64 stays beside the file."""
    async with serve() as client:
        made = built(client, **sent)
        tracemalloc.start()
        try:
            async with waiting(client, fakes, made):
                held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert 6 * MB < held < 1.4 * 6 * MB
