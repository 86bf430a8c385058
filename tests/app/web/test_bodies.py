"""Bodies that are too long, of no known length, or never come."""

import json

import pytest

from tests.support.pictures import item
from tests.support.refusals import JSON, refused

pytestmark = pytest.mark.anyio


async def test_a_body_over_the_limit_is_refused_declared_or_not(serve):
    """413 without Retry-After; of an undeclared body no more than the limit is read."""
    sent = []

    async def chunks():
        for n in range(100):
            sent.append(n)
            yield bytes(2**18)

    async with serve(server={"body_limit_mb": 1}) as client:
        declared = await client.post("/score", content=bytes(2**20 + 1), headers=JSON)
        chunked = await client.post("/score", content=chunks(), headers=JSON)
        lies = {**JSON, "Content-Length": "9" * 5000}
        absurd = await client.post("/score", content=b"{}", headers=lies)

    for answer in (declared, chunked, absurd):
        refused(answer, 413, "too_large")
        assert "Retry-After" not in answer.headers
    assert 5 == len(sent)


@pytest.mark.parametrize("length", [b"\xb2", b"-1", b"x"])
async def test_a_length_that_is_no_number_is_no_fault_of_ours(serve, length):
    """What counts is what comes."""
    async with serve() as client:
        headers = [(b"Content-Type", b"application/json"), (b"Content-Length", length)]
        refused(await client.post("/score", content=b"{", headers=headers), 400, "malformed")


async def test_a_caller_who_leaves_amid_the_body_is_no_error(serve, fakes, caplog):
    """Nothing is answered, nothing is scored, and no error is logged."""
    answered = []

    async def gone():
        return {"type": "http.disconnect"}

    async def send(message):
        answered.append(message)

    async with serve() as client:
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/score",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        await client._transport.app(scope, gone, send)

    assert [] == answered
    assert [] == fakes["vqa"].calls
    assert [] == [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_byte_order_mark_before_json_is_skipped(serve):
    """Windows tools write one; in a part of a form, too."""
    body = json.dumps({"items": [item("a square")], "metrics": ["clipscore"]}).encode("utf-8-sig")
    async with serve() as client:
        answers = [
            await client.post("/score", content=body, headers=JSON),
            await client.post("/score", files={"request": ("request.json", body)}),
            await client.post("/score", content=b"\xef\xbb\xbf" + body, headers=JSON),
        ]

    assert [200, 200, 400] == [each.status_code for each in answers]
