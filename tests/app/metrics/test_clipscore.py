"""CLIPScore: the text that CLIP gets."""

import pytest

from models.core.calls import TextCall
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("prefix", ["A photo depicts", "A photo depicts "])
async def test_a_prefix_stands_before_the_prompt_with_one_space(serve, fakes, prefix):
    """By default there is none: the texts of two requests differ in that alone."""
    body = {"items": [item("a red dog")], "metrics": ["clipscore"]}
    async with serve() as client:
        began = len(fakes["clip"].calls)
        for options in ({}, {"scale": "hessel", "prefix": prefix}):
            answer = await client.post("/score", json={**body, "options": {"clipscore": options}})
            assert 200 == answer.status_code, answer.text

    texts = [call.text for call in fakes["clip"].calls[began:] if isinstance(call, TextCall)]
    assert ["a red dog", "A photo depicts a red dog"] == texts
    assert "A photo depicts" == answer.json()["provenance"]["options"]["clipscore"]["prefix"].strip()


async def test_an_empty_prefix_is_refused(serve):
    """Nothing stands for none."""
    body = {"items": [item("a red dog")], "metrics": ["clipscore"], "options": {"clipscore": {"prefix": " "}}}
    async with serve() as client:
        answer = await client.post("/score", json=body)

    assert (422, "/options/clipscore/prefix") == (answer.status_code, answer.json()["errors"][0]["pointer"])
