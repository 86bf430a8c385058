"""docs/reference/dialects.md: the request that it shows."""

import json

import pytest

from tests.support.pages import fences
from tests.support.pictures import b64, png

PAGE = "reference/dialects.md"


@pytest.mark.anyio
async def test_the_request_shown_is_answered(serve):
    [(_, text)] = fences(PAGE, "json")
    body = json.loads(text.replace("<base64>", b64(png())).replace("base64,…", f"base64,{b64(png('blue'))}"))
    async with serve(dialects={"enabled": ["rerank"]}) as client:
        answer = await client.post("/v1/rerank", json=body)

    assert {0, 1} == {result["index"] for result in answer.json()["results"]}
