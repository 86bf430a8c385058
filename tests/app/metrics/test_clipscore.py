"""CLIPScore: the text that CLIP gets."""

import numpy as np
import pytest

from models.core.calls import TextCall
from models.core.outcomes import Embedding
from tests.support.pictures import item
from tests.support.questions import noted

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


async def test_a_prompt_that_was_cut_is_a_warning(serve, fakes):
    """Only of an item whose prompt was; the image has no length."""
    vector = np.array([0.6, 0.8], np.float32)
    fakes["clip"].answer = lambda call: Embedding(vector, truncated="long" in getattr(call, "text", "long"))
    async with serve() as client:
        cut, warned = await noted(client, "clipscore", item("a long text"))
        whole, silent = await noted(client, "clipscore", item("a dog"))

    assert 1 == pytest.approx(cut["details"]["clipscore"]["cosine"]) == whole["scores"]["clipscore"]
    assert ["the prompt was cut at CLIP's context length, or at <|endoftext|> in it"] == warned
    assert [] == silent
