"""Grades: what a judge is asked and shown, and what its labels' probabilities come to."""

from math import log

import pytest

from models.core.calls import LabelCall
from models.core.outcomes import Choices
from service.metrics.rubrics.options import RUBRICS
from tests.support.pictures import b64, item, pixels, png
from tests.support.questions import noted, scored
from tests.support.rubrics import grades, question

pytestmark = pytest.mark.anyio
PROMPT = "a red dog"
REFERENCES = [b64(png(colour)) for colour in ("lime", "blue", "black")]
SOURCE = b64(png("white"))
# Others are for benchmarks, or for pairs.
GRADED = [name for name, rubric in RUBRICS.items() if rubric.read == "expected" and not rubric.compares]
ANCHORED = [name for name in GRADED if "references" in RUBRICS[name].uses]


@pytest.fixture
def says(fakes):
    """Has the model give each label, in its order, the probability that is listed."""

    def say(*probabilities):
        fakes["vqa"].answer = lambda call: (
            Choices(tuple((log(each),) for each in probabilities))
            if isinstance(call, LabelCall)
            else type(fakes["vqa"]).answer(fakes["vqa"], call)
        )

    return say


async def test_the_score_is_the_expected_label_among_the_labels(serve, says):
    """Σ p·label / Σ p; the probabilities themselves are over the whole vocabulary."""
    says(0.02, 0.04, 0.1, 0.4, 0.24)
    async with serve() as client:
        result, warnings = await noted(client, "judge", item(PROMPT))

    expected = (0.02 * 1 + 0.04 * 2 + 0.1 * 3 + 0.4 * 4 + 0.24 * 5) / 0.8
    told = result["details"]["judge"]
    grade = told["outputs"]["grade"]
    assert expected == pytest.approx(result["scores"]["judge"])
    assert grade["expected"] == told["expected"] == result["scores"]["judge"]
    assert {"1": 0.02, "2": 0.04, "3": 0.1, "4": 0.4, "5": 0.24} == pytest.approx(grade["probabilities"])
    assert 0.8 == pytest.approx(grade["label_mass"])
    assert ("semantic_consistency", "1-5") == (told["rubric"], told["labels"])
    assert RUBRICS["semantic_consistency"].digest == told["digest"]
    assert [] == warnings


async def test_of_letters_a_is_the_best(serve, says, fakes):
    """The same grades as those of the digits, in the other order."""
    says(0.6, 0.1, 0.1, 0.1, 0.1)
    async with serve() as client:
        result = await scored(client, "judge", item(PROMPT), labels="A-E")

    assert 4.0 == pytest.approx(result["scores"]["judge"])
    [call] = fakes["vqa"].calls
    assert tuple("ABCDE") == call.labels
    worst, *_, best = grades("semantic_consistency")
    assert f"A: {best}\n" in call.question
    assert f"E: {worst}\n" in call.question


async def test_a_model_that_would_rather_say_something_else_is_warned_about(serve, says):
    """The score stands, and says how little of the probability it rests on."""
    says(0.01, 0.01, 0.01, 0.01, 0.06)
    async with serve() as client:
        result, [warning] = await noted(client, "judge", item(PROMPT))

    assert 4 == pytest.approx(result["scores"]["judge"])
    assert "the labels 1-5 of grade have 0.1 of the probability" in warning


async def test_labels_without_any_probability_are_an_error_and_no_score(serve, fakes):
    """Nothing is known of a grade then."""
    fakes["vqa"].answer = lambda call: Choices(((-1000.0,),) * 5)
    async with serve() as client:
        result = await scored(client, "judge", item(PROMPT))

    assert {} == result["scores"]
    assert "unanswered" == result["errors"]["judge"]["code"]


@pytest.mark.parametrize("template", GRADED)
async def test_every_rubric_asks_with_its_own_words_and_shows_what_it_names(serve, fakes, template):
    """Pictures in its order, each after its introduction, and the image last."""
    uses = RUBRICS[template].uses
    beside = {"references": REFERENCES[:2]} if "references" in uses else {}
    beside |= {"source": SOURCE} if "source" in uses else {}
    async with serve() as client:
        result = await scored(client, "judge", item(PROMPT, **beside), rubric=template)

    [call] = fakes["vqa"].calls
    told = result["details"]["judge"]
    assert 1 <= result["scores"]["judge"] <= 5
    assert [{"question": question(template, PROMPT, "1-5"), "written": []}] == told["calls"]
    assert told["calls"][0]["question"] == call.question
    assert all(grade in call.question for grade in grades(template))
    texts = [each for each in call.before if isinstance(each, str)]
    images = [each for each in call.before if not isinstance(each, str)]
    assert len(images) == len(beside.get("references", [])) + ("source" in beside)
    assert len(texts) == (len(images) + 1 if images else 0)
    assert texts[-1:] == list(RUBRICS[template].calls[0].captions.values())[-1:]


@pytest.mark.parametrize("template", ANCHORED)
async def test_references_are_shown_in_their_order_with_their_numbers(serve, fakes, template):
    """Up to three, before the image."""
    async with serve() as client:
        await scored(client, "judge", item(PROMPT, references=REFERENCES), rubric=template)

    [call] = fakes["vqa"].calls
    colours = [pixels(each).getpixel((0, 0)) for each in call.before[1::2]]
    assert [(0, 255, 0), (0, 0, 255), (0, 0, 0)] == colours
    assert ["1", "2", "3"] == [text.rstrip(":")[-1] for text in call.before[:-1:2]]
    assert (255, 0, 0) == pixels(call.image).getpixel((0, 0))


@pytest.mark.parametrize(
    ("template", "name"), [("editing", "source"), *((name, "references") for name in ANCHORED)]
)
async def test_an_item_without_the_pictures_that_a_rubric_compares_with_is_an_error(
    serve, fakes, template, name
):
    """Of that item alone; the model is not asked."""
    async with serve() as client:
        result = await scored(client, "judge", item(PROMPT), rubric=template)

    error = result["errors"]["judge"]
    assert "missing_picture" == error["code"]
    assert f"{template} needs the item's {name}" in error["detail"]
    assert [] == fakes["vqa"].calls


@pytest.mark.parametrize("options", [{"rubric": "unheard_of"}, {"labels": "0-10"}, {"labels": "a-e"}])
async def test_other_options_are_refused(serve, options):
    """With their place."""
    [name] = options
    async with serve() as client:
        body = {"items": [item()], "metrics": ["judge"], "options": {"judge": options}}
        answer = await client.post("/score", json=body)

    assert (422, f"/options/judge/{name}") == (answer.status_code, answer.json()["errors"][0]["pointer"])


async def test_rubrics_are_listed_in_the_schema(serve):
    """So that a caller can choose among them."""
    async with serve() as client:
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]

    assert [*RUBRICS] == schemas["JudgeOptions"]["properties"]["rubric"]["enum"]


async def test_a_model_of_its_own_may_judge(serve, fakes):
    """The setting names it; without it the `vqa` model does."""
    fakes["grader"] = type(fakes["vqa"])()
    models = {name: {"family": "fake", "role": "vqa" if name == "grader" else name} for name in fakes}
    async with serve(models=models, metrics={"judge": {"model": "grader"}}) as client:
        await scored(client, "judge", item(PROMPT))

    assert (1, 0) == (len(fakes["grader"].calls), len(fakes["vqa"].calls))
