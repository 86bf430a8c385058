"""Grades that CLIP-FlanT5 gives, and those that it cannot."""

import pytest

from models.checkpoints.locate import DEMO
from models.families.clip_flant5.model import ClipFlanT5
from tests.support.paths import GOLDEN
from tests.support.pictures import b64, item, png
from tests.support.questions import noted, scored
from tests.support.rubrics import VALUES, question

pytestmark = pytest.mark.anyio

CLIP_FLANT5 = GOLDEN / "clip_flant5"
PROMPT = "a red dog"
SOURCE = b64(png("white"))


async def test_clip_flant5_grades_by_the_probabilities_that_each_label_has_alone(serve, fakes):
    """Asked for one at a time, as answers to the same question, whose likelihoods are the reference's."""
    fakes["vqa"] = ClipFlanT5(CLIP_FLANT5, dtype="float32", device="cpu")
    file = b64(min((CLIP_FLANT5 / "images").iterdir()).read_bytes())
    asked, letters = question("semantic_consistency", "{}", "A-E"), VALUES["A-E"]
    async with serve() as client:
        alone = {
            letter: (
                await scored(
                    client,
                    "vqascore",
                    item(PROMPT, file),
                    question=asked,
                    answer=letter,
                    normalization="first_token",
                )
            )["scores"]["vqascore"]
            for letter in letters
        }
        result, warnings = await noted(client, "judge", item(PROMPT, file), labels="A-E")

    told = result["details"]["judge"]["outputs"]["grade"]
    expected = sum(p * letters[letter] for letter, p in alone.items()) / sum(alone.values())
    assert alone == pytest.approx(told["probabilities"], rel=1e-4)
    assert expected == pytest.approx(result["scores"]["judge"], abs=1e-5)
    assert sum(alone.values()) == pytest.approx(told["label_mass"], rel=1e-4)
    assert "would answer something else" in warnings[0]


@pytest.mark.parametrize(
    ("model", "more", "told"),
    [
        (CLIP_FLANT5, {"labels": "1-5"}, "label 4 of 5 has 2 tokens"),
        (CLIP_FLANT5, {"labels": "A-E", "rubric": "editing"}, "takes one image, and the call has several"),
    ],
)
async def test_a_model_that_cannot_grade_says_so(serve, fakes, model, more, told):
    """Some labels are no tokens of its own, and CLIP-FlanT5 sees one picture."""
    fakes["vqa"] = ClipFlanT5(model, dtype="float32", device="cpu")
    beside = {"source": SOURCE} if "rubric" in more else {}
    async with serve() as client:
        result = await scored(client, "judge", item(PROMPT, **beside), **more)

    error = result["errors"]["judge"]
    assert ("call_refused", {}) == (error["code"], result["scores"])
    assert told in error["detail"]


async def test_a_model_that_can_give_no_labels_has_no_judge_on_offer(serve, fakes):
    """The demo model was taught neither digits nor letters; nor has a composite that needs it."""
    fakes["vqa"] = ClipFlanT5(DEMO / "clip_flant5", dtype="float32", device="cpu")
    parts = {"judge": {"weight": 1}, "vqascore": {"weight": 1}}
    async with serve(composites={"both": parts}) as client:
        refused = await client.post("/score", json={"items": [item(PROMPT)], "metrics": ["judge"]})
        of_both = await client.post("/score", json={"items": [item(PROMPT)], "metrics": ["both"]})
        served = (await client.get("/models")).json()["metrics"]
        health = (await client.get("/health")).json()

    assert not {"judge", "both"} & {*served, *health["rewards"], *health["degraded"], *health["not_ready"]}
    assert "vqascore" in health["rewards"]
    for answer in (refused, of_both):
        assert (422, "unknown_metric") == (answer.status_code, answer.json()["code"])
        assert "models.vqa cannot serve judge: label 1 of 5 has 2 tokens" in answer.json()["detail"]
