"""A model that changes while a request uses it: no response has scores of two models under one name."""

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from tests.support.app import service_of
from tests.support.pictures import b64, png
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
PICTURES = [b64(png(colour)) for colour in ("red", "blue", "green")]


@asynccontextmanager
async def changing(serve, vqa, at):
    """A client of a service whose model changes when it has been given the prompt so many times."""
    seen, answer = [], vqa.answer

    def counting(call):
        if PROMPT in call.question:
            seen.append(call)
            if len(seen) in at:
                backend = service_of(client).engine.catalog.handles(["vqascore"])["vqa"].backend
                backend.info = replace(backend.info, revision=str(2 + at.index(len(seen))))
        return answer(call)

    vqa.answer = counting
    async with serve() as client:
        yield client


async def rank(client, **fields):
    return await client.post("/rank", json={"prompt": PROMPT, "images": PICTURES, **fields})


async def test_a_cascade_whose_model_changed_is_repeated_with_the_new_one(serve, fakes):
    """The model of both metrics changes after the first stage; all scores are of the model that is named."""
    async with changing(serve, fakes["vqa"], [len(PICTURES)]) as client:
        changed = await rank(client, metric="dsg", cascade={"metric": "vqascore", "keep": 2})
        again = await rank(client, metric="dsg", cascade={"metric": "vqascore", "keep": 2})

    assert "fake-vqa@2" == changed.json()["models"]["vqa"]
    assert changed.json()["ranking"] == again.json()["ranking"]


async def test_scores_of_two_models_of_one_name_are_no_ranking(serve, fakes):
    """The model changes during the repetition, too: a temporary error that names it."""
    async with changing(serve, fakes["vqa"], [len(PICTURES), 2 * len(PICTURES)]) as client:
        changed = await rank(client, metric="dsg", cascade={"metric": "vqascore", "keep": 2})

    problem = refused(changed, 503, "model_changed")
    assert "models.vqa changed during the request, from fake-vqa@2 to fake-vqa@3" == problem["detail"]
    assert 1 <= int(changed.headers["retry-after"])
