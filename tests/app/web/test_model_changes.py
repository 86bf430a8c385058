"""A model that changes while a request uses it: no response has scores of two models under one name."""

from dataclasses import replace

import pytest

from tests.support.app import service_of
from tests.support.pictures import b64, png
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
PICTURES = [b64(png(colour)) for colour in ("red", "blue", "green")]


async def rank(client, **fields):
    return await client.post("/rank", json={"prompt": PROMPT, "images": PICTURES, **fields})


async def test_scores_of_two_models_of_one_name_are_no_ranking(serve, fakes):
    """The model of both metrics changes after the first stage: a temporary error that names it."""
    vqa, seen = fakes["vqa"], []
    answer = vqa.answer

    def changing(call):
        if PROMPT in call.question:
            seen.append(call)
            if len(seen) == len(PICTURES):  # the last of the first stage
                backend = service_of(client).engine.catalog.handles(["vqascore"])["vqa"].backend
                backend.info = replace(backend.info, revision="2")
        return answer(call)

    vqa.answer = changing
    async with serve() as client:
        changed = await rank(client, metric="dsg", cascade={"metric": "vqascore", "keep": 2})
        again = await rank(client, metric="dsg", cascade={"metric": "vqascore", "keep": 2})

    problem = refused(changed, 503, "model_changed")
    assert "models.vqa changed during the request, from fake-vqa@1 to fake-vqa@2" == problem["detail"]
    assert 1 <= int(changed.headers["retry-after"])
    assert "fake-vqa@2" == again.json()["models"]["vqa"]
