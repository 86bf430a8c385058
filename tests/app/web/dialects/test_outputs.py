"""Named outputs of reward models, by the names that trainers' dialects ask for."""

import pytest

from tests.app.web.dialects.conftest import PICTURES, PROMPTS
from tests.app.web.dialects.test_unirl import ask
from tests.support.fakes import FakeHpsv3
from tests.support.pictures import b64

pytestmark = pytest.mark.anyio

MODELS = {name: {"family": "fake", "role": name} for name in ("hpsv3", "clip", "vqa", "questions")}
TABLES = {"models": MODELS, "metrics": {"hpsv3": {"model": "hpsv3"}}}
OUTPUTS = ["hpsv3.mu", "hpsv3.sigma"]


async def test_a_dialect_has_each_output_as_a_reward(dialects, fakes):
    """Of one call, with the number that `/score` gives; the roster names them."""
    fakes["hpsv3"] = model = FakeHpsv3()
    asked = [ask(*pair, OUTPUTS) for pair in zip(PICTURES, PROMPTS, strict=True)]
    async with dialects(**TABLES) as apps:
        roster = (await apps.private.get("/unirl/rewards")).json()["rewards"]
        answer = (await apps.private.post("/unirl/score", json={"requests": asked})).json()
        calls = len(model.calls)
        expected = [
            {name: await apps.score(*pair, name) for name in OUTPUTS}
            for pair in zip(PICTURES, PROMPTS, strict=True)
        ]

    assert {*OUTPUTS} <= {*roster}
    assert expected == [
        {name: next(iter(of_it.values())) for name, of_it in result.items()} for result in answer["results"]
    ]
    assert len(PICTURES) == calls


async def test_pictures_are_ranked_by_an_output(dialects, fakes):
    """The model of a rerank is the metric's name."""
    fakes["hpsv3"] = FakeHpsv3()
    documents = [b64(picture) for picture in PICTURES]
    async with dialects(**TABLES) as apps:
        body = {"model": "hpsv3.mu", "query": PROMPTS[0], "documents": documents}
        ranked = (await apps.main.post("/v1/rerank", json=body)).json()["results"]
        expected = [await apps.score(picture, PROMPTS[0], "hpsv3.mu") for picture in PICTURES]

    assert expected == [each["relevance_score"] for each in sorted(ranked, key=lambda each: each["index"])]
