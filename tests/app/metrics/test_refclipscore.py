"""RefCLIPScore: a caption beside its picture and beside reference captions."""

import numpy as np
import pytest

from models.core.calls import ImageCall, TextCall
from models.core.outcomes import Embedding
from service.observability.notes import Code
from tests.support.pictures import item
from tests.support.questions import noted, scored

pytestmark = pytest.mark.anyio
DIRECTIONS = {
    "a dog": (1.0, 0.0),
    "a hound": (0.6, 0.8),
    "a cat": (0.0, 1.0),
    "not a dog": (-1.0, 0.0),
}
IMAGE = (0.8, 0.6)


@pytest.fixture(autouse=True)
def embeds(fakes):
    """Has the model embed texts without their prefix by the table, and the image between dog and cat."""

    def answer(call):
        text = "" if isinstance(call, ImageCall) else call.text.removeprefix("A photo depicts ")
        return Embedding(np.array(DIRECTIONS.get(text, IMAGE), np.float32), truncated="hound" in text)

    fakes["clip"].answer = answer


@pytest.mark.parametrize(
    ("prompt", "texts", "a", "cosines"),
    [
        ("a dog", ["a cat", "a hound"], 2.5 * 0.8, [0, 0.6]),
        ("a cat", ["a hound"], 2.5 * 0.6, [0.8]),
        ("a dog", ["a dog"], 2.5 * 0.8, [1]),
        ("a dog", ["not a dog"], 2.5 * 0.8, [-1]),
        ("not a dog", ["a cat"], 0, [0]),
    ],
)
async def test_the_score_is_the_harmonic_mean_of_clipscore_and_the_closest_text(
    serve, prompt, texts, a, cosines
):
    """0 if either is, and never NaN."""
    async with serve() as client:
        result = await scored(client, "refclipscore", item(prompt), reference_texts=texts)

    b = max(0, *cosines)
    expected = 2 * a * b / (a + b) if a and b else 0
    assert expected == pytest.approx(result["scores"]["refclipscore"], abs=1e-7)
    details = result["details"]["refclipscore"]
    assert [a, b] == pytest.approx([details["image_score"], details["text_score"]], abs=1e-7)
    assert cosines == pytest.approx(details["cosines"], abs=1e-7)


@pytest.mark.parametrize(
    ("options", "before"),
    [({}, "A photo depicts "), ({"prefix": "A sketch of "}, "A sketch of "), ({"prefix": None}, "")],
)
async def test_the_prefix_stands_before_the_prompt_and_each_text(serve, fakes, options, before):
    """By default the paper's; null for none."""
    async with serve() as client:
        await scored(client, "refclipscore", item("a dog"), reference_texts=["a cat"], **options)

    texts = {call.text for call in fakes["clip"].calls if isinstance(call, TextCall)}
    assert {f"{before}a dog", f"{before}a cat"} == texts


async def test_without_texts_the_item_has_an_error(serve, fakes):
    """The model is not called."""
    async with serve() as client:
        result = await scored(client, "refclipscore", item("a dog"))

    error = result["errors"]["refclipscore"]
    assert ("invalid", True) == (error["code"], "reference_texts" in error["detail"])
    assert [] == fakes["clip"].calls


async def test_a_cut_text_has_a_warning(serve):
    """Of the prompt or a reference text."""
    async with serve() as client:
        _, of_a_text = await noted(client, "refclipscore", item("a dog"), reference_texts=["a hound"])
        _, of_the_prompt = await noted(client, "refclipscore", item("a hound"), reference_texts=["a dog"])
        answer = await client.post(
            "/score",
            json={
                "items": [item("a dog", options={"refclipscore": {"reference_texts": ["a hound"]}})],
                "metrics": ["refclipscore"],
            },
        )

    assert ["a reference text was cut", "the prompt was cut"] == [
        warning.partition(" at")[0] for [warning] in (of_a_text, of_the_prompt)
    ]
    assert [Code.PROMPT_TRUNCATED] == [each["code"] for each in answer.json()["warning_codes"]][-1:]


@pytest.mark.parametrize("texts", [["a"] * 65, [], [""], "a dog"])
async def test_other_texts_are_refused(serve, texts):
    """With their place."""
    body = {"items": [item()], "metrics": ["refclipscore"]}
    body["options"] = {"refclipscore": {"reference_texts": texts}}
    async with serve() as client:
        answer = await client.post("/score", json=body)

    assert 422 == answer.status_code
    assert answer.json()["errors"][0]["pointer"].startswith("/options/refclipscore/reference_texts")
