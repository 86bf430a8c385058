"""Gecko: normalised choices, questions that the prompt does not entail, and keywords without a question."""

import json
import math

import pytest

from models.core.calls import ChoiceCall, EntailmentCall
from models.core.outcomes import Choices, Entailment, Likelihood
from tests.support.fakes import FakeModel
from tests.support.pictures import item
from tests.support.questions import noted, scored, written

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
COLOUR = {
    "id": 1,
    "text": "What color is the dog?",
    "kind": "attribute - color",
    "choices": ["red", "dark blue"],
    "expected": "red",
    "phrase": "red",
}
THERE = {"id": 2, "text": "Is there a dog?", "choices": ["yes", "no"], "expected": "yes", "phrase": "dog"}
UNFILTERED = "no NLI model is configured: questions that the prompt does not entail were not dropped"


class FakeNli(FakeModel):
    """Entails everything, but for the hypotheses in `foreign`."""

    role = "nli"

    def __init__(self):
        super().__init__()
        self.foreign = {}

    def answer(self, call: EntailmentCall):
        return Entailment(self.foreign.get(call.hypothesis, 0.9))


@pytest.fixture
def nli(fakes):
    fakes["nli"] = FakeNli()
    return fakes["nli"]


@pytest.fixture
def seen(fakes):
    """A VQA model that sees a dog, rather red than dark blue."""
    fakes["vqa"].answer = lambda call: (
        Choices(((-1.0,), (-0.5, -0.7))) if isinstance(call, ChoiceCall) else Likelihood((-0.1,), -0.1, -2.0)
    )


RED = math.exp(-1.0) / (math.exp(-1.0) + math.exp(-0.6))
RED_BY_SUM = math.exp(-1.0) / (math.exp(-1.0) + math.exp(-1.2))
DOG = math.exp(-0.1) / (math.exp(-0.1) + math.exp(-2.0))


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(("choices", "red"), [("mean", RED), ("sum", RED_BY_SUM)])
async def test_a_question_counts_the_expected_choices_share_of_all(serve, choices, red):
    """By the mean or the sum of the log-probabilities of a choice's tokens; the score is the mean."""
    async with serve() as client:
        result = await scored(client, "gecko", item(PROMPT), question_set=[COLOUR, THERE], choices=choices)

    assert pytest.approx((red + DOG) / 2) == result["scores"]["gecko"]
    first, second = result["details"]["gecko"]["questions"]
    assert pytest.approx({"red": red, "dark blue": 1 - red}) == first["probabilities"]
    assert pytest.approx((red, DOG)) == (first["score"], second["score"])
    assert ("dark blue" if choices == "mean" else "red") == first["answer"]


@pytest.mark.usefixtures("seen")
@pytest.mark.parametrize(("choices", "score"), [("mean", 0.5), ("sum", 1)])
async def test_hard_answers_count_1_or_0(serve, choices, score):
    """By the likeliest choice: dark blue by the mean of its tokens, and red by the sum."""
    async with serve() as client:
        options = {"question_set": [COLOUR, THERE], "choices": choices, "answers": "hard"}
        result = await scored(client, "gecko", item(PROMPT), **options)

    assert score == result["scores"]["gecko"]


@pytest.mark.usefixtures("seen")
async def test_without_an_nli_model_details_and_warnings_say_that_nothing_was_dropped(serve):
    """The score is there all the same."""
    async with serve() as client:
        result, warnings = await noted(client, "gecko", item(PROMPT), question_set=[COLOUR, THERE])

    details = result["details"]["gecko"]
    assert (False, []) == (details["filtered"], details["unasked"])
    assert [(None, False)] * 2 == [(q["entailment"], q["dropped"]) for q in details["questions"]]
    assert [UNFILTERED] == warnings


@pytest.mark.usefixtures("seen")
async def test_a_question_that_the_prompt_does_not_entail_is_dropped_and_never_asked(serve, fakes, nli):
    """It is shown, counts nothing and covers no word; premise and hypothesis are the paper's."""
    nli.foreign = {"What color is the dog? red": 0.004}
    async with serve() as client:
        result, warnings = await noted(client, "gecko", item(PROMPT), question_set=[COLOUR, THERE])

    assert pytest.approx(DOG) == result["scores"]["gecko"]
    details = result["details"]["gecko"]
    dropped, kept = details["questions"]
    assert (True, 0.004, None, None, {}) == tuple(
        dropped[name] for name in ("dropped", "entailment", "answer", "score", "probabilities")
    )
    assert (False, 0.9, "yes") == tuple(kept[name] for name in ("dropped", "entailment", "answer"))
    assert (True, ["a", "red"]) == (details["filtered"], details["uncovered"])
    assert [] == warnings
    assert 1 == len(fakes["vqa"].calls)
    assert {
        EntailmentCall(PROMPT, "What color is the dog? red"),
        EntailmentCall(PROMPT, "Is there a dog? yes"),
    } == {*nli.calls}


@pytest.mark.parametrize(("threshold", "kept"), [(0.0, 2), (0.3, 2), (0.31, 1), (0.9, 1)])
async def test_the_threshold_is_the_least_that_stays(serve, nli, threshold, kept):
    """Of the probability that the prompt entails the question and its answer."""
    nli.foreign = {"What color is the dog? red": 0.3}
    async with serve() as client:
        asked = {"question_set": [COLOUR, THERE], "nli_threshold": threshold}
        result = await scored(client, "gecko", item(PROMPT), **asked)

    assert kept == sum(not q["dropped"] for q in result["details"]["gecko"]["questions"])


async def test_where_all_questions_are_dropped_there_is_an_error_and_no_score(serve, fakes, nli):
    """Never 0; the picture is asked nothing."""
    async with serve() as client:
        asked = {"question_set": [COLOUR, THERE], "nli_threshold": 1}
        result = await scored(client, "gecko", item(PROMPT), **asked)

    assert {} == result["scores"]
    assert "no_questions" == result["errors"]["gecko"]["code"]
    assert "entails none of its 2 questions" in result["errors"]["gecko"]["detail"]
    assert [] == fakes["vqa"].calls


async def test_a_failing_nli_model_fails_the_metric(serve, nli):
    """A fault is no reason to score unfiltered."""
    nli.fault = lambda call: RuntimeError("out of memory") if call != nli.example() else None
    async with serve() as client:
        result = await scored(client, "gecko", item(PROMPT), question_set=[COLOUR, THERE])

    assert {} == result["scores"]
    assert "model_fault" == result["errors"]["gecko"]["code"]


async def test_keywords_without_a_question_are_in_the_details_and_warnings_also_of_a_stored_set(
    serve, fakes, nli
):
    """`POST /questions` shows them too."""
    keyword = {"id": 1, "text": "red", "type": "attribute - color", "groundable": True}
    dog = {"id": 2, "text": "Is there a dog?", "choices": ["yes", "no"], "answer": "yes"}
    fakes["questions"].texts = {
        PROMPT: json.dumps({"keywords": [keyword, {**keyword, "id": 2, "text": "dog"}]}),
        f"{PROMPT}\nkeywords: 1 red, 2 dog": json.dumps({"questions": [dog]}),
    }
    async with serve() as client:
        made, stored = [await noted(client, "gecko", item(PROMPT)) for _ in range(2)]
        [shown] = (await written(client, "gecko", PROMPT)).json()["sets"]

    assert ["miss", "hit"] == [result["cache"]["gecko"] for result, _ in (made, stored)]
    for result, warnings in (made, stored):
        assert ["red"] == result["details"]["gecko"]["unasked"]
        assert ["the question LLM wrote no question about: red"] == warnings
    assert ["red"] == shown["unasked"]
    assert 2 == len(fakes["questions"].calls)


async def test_all_questions_are_one_batch_of_the_vqa_model(serve, fakes):
    """Each with all its choices."""
    async with serve() as client:
        await scored(client, "gecko", item(PROMPT), question_set=[COLOUR, THERE])

    assert [2] == [len(batch) for batch in fakes["vqa"].batches if len(batch) > 1]


async def test_a_threshold_that_is_no_probability_is_refused(serve):
    """With the field's name."""
    async with serve() as client:
        body = {"items": [item()], "metrics": ["gecko"], "options": {"gecko": {"nli_threshold": 1.5}}}
        refused = await client.post("/score", json=body)

    assert 422 == refused.status_code
    assert "/options/gecko/nli_threshold" in refused.text


@pytest.mark.usefixtures("seen")
async def test_a_question_with_choices_is_asked_in_the_requests_words(serve, fakes):
    """The default is the model's own template."""
    async with serve() as client:
        await scored(client, "gecko", item(PROMPT), question_set=[COLOUR], question="Say: {}")

    assert ["Say: What color is the dog?"] == [call.question for call in fakes["vqa"].calls]
