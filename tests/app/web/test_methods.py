"""Methods and encodings of HTTP itself, on every route."""

import gzip
from threading import current_thread

import pytest

from tests.support.pictures import b64, png
from tests.support.refusals import JSON, refused

pytestmark = pytest.mark.anyio

GETS = ("/livez", "/readyz", "/health", "/models", "/openapi.json", "/metrics", "/", "/playground/app.js")


@pytest.mark.shared
@pytest.mark.parametrize("path", GETS)
async def test_head_is_answered_as_get_without_the_body(serve, path):
    """Load balancers and `curl -I` probe with it."""
    async with serve() as client:
        got, head = await client.get(path), await client.head(path)

    assert (got.status_code, b"") == (head.status_code, head.content)
    assert got.headers["Content-Type"] == head.headers["Content-Type"]
    if path != "/metrics":  # which the first request has changed
        assert str(len(got.content)) == head.headers["Content-Length"]


@pytest.mark.shared
async def test_head_is_refused_where_get_is(serve):
    """405, with the methods that the route has, and 404 where there is none."""
    async with serve() as client:
        asking, reading = await client.head("/score"), await client.post("/livez")
        missing, several = await client.head("/nothing"), await client.put("/models/clip/load")

    assert (405, "POST", b"") == (asking.status_code, asking.headers["Allow"], asking.content)
    assert (405, "GET, HEAD") == (reading.status_code, reading.headers["Allow"])
    assert (405, "POST") == (several.status_code, several.headers["Allow"])
    assert 404 == missing.status_code


@pytest.mark.shared
@pytest.mark.parametrize("encoding", ["gzip", "br", "identity, gzip"])
async def test_a_compressed_body_is_refused_by_the_header_that_says_so(serve, encoding):
    """415, not "not JSON"."""
    async with serve() as client:
        headers = {**JSON, "Content-Encoding": encoding}
        answer = await client.post("/score", content=gzip.compress(b"{}"), headers=headers)

    assert "Content-Encoding" in refused(answer, 415, "unsupported_media_type")["detail"]


@pytest.mark.shared
async def test_a_body_that_says_it_is_not_compressed_is_read(serve):
    """`identity` is no encoding."""
    async with serve() as client:
        sent = {"prompt": "a", "images": [b64(png())], "metrics": ["clipscore"]}
        answer = await client.post("/score", json=sent, headers={"Content-Encoding": "identity"})

    assert 200 == answer.status_code


async def test_the_openapi_document_is_built_off_the_event_loop_by_the_first_request_for_it(serve):
    """No start waits for it, and neither do other requests."""
    threads = []
    async with serve() as client:
        app = client._transport.app
        whole = app.document
        app.document = lambda: threads.append(current_thread()) or whole()
        before = whole.cache_info().misses
        served = await client.get("/openapi.json")

    assert (0, 200) == (before, served.status_code)
    assert [True] == [thread is not current_thread() for thread in threads]


async def test_the_openapi_document_is_written_once(serve):
    """Whoever asks for it again gets the same bytes; to write it takes as long as many small requests."""
    async with serve() as client:
        app = client._transport.app
        written, served = app.document(), await client.get("/openapi.json")

    assert written == served.content
    assert written is app.document()
    assert served.json() == app.openapi()
