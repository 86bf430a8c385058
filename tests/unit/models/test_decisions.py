"""VQA models behind decision endpoints: what is read of answers, and what no endpoint can answer."""

from math import log

import pytest

from models.core.calls import AnswerCall, ChoiceCall, FirstTokenCall, LabelCall, LikelihoodCall
from models.core.contract import ModelError, UpstreamError
from models.core.outcomes import Choices, Likelihood
from models.families.decisions.model import DecisionModel
from models.families.registry import families
from models.images.image import Image
from tests.support.pictures import png

pytestmark = pytest.mark.anyio

PICTURE = Image(png("red"))
YES_NO = LikelihoodCall(PICTURE, "Is it red?")
CHOICE = ChoiceCall(PICTURE, "Which colour?", ("red", "blue"))
LISTED = [{"value": "red", "probability": 0.75}, {"value": "blue", "probability": 0.25}]
SHARES = {"yes": 0.8, "no": 0.2}


def model(body="openai"):
    return DecisionModel("m", body, extra_body={"seed": 1})


async def answered(answer, *calls, body="openai"):
    """The outcomes of *calls* if the server answers so, and the body that it was sent."""
    sent = []

    async def post(path, content):
        sent.append((path, content))
        return answer

    made = model(body)
    return await made.answer_all([made.prepare(call) for call in calls], post), sent


async def test_openais_probabilities_are_those_among_the_options():
    """A predicate's and a choice's, by place; one request has both."""
    answer = {"answers": [{"probability": 0.8}, {"probabilities": LISTED[::-1]}]}
    outcomes, [(path, body)] = await answered(answer, YES_NO, CHOICE)

    assert [
        Likelihood((log(0.8),), log(0.8), log(1 - 0.8)),
        Choices(((log(0.75),), (log(0.25),))),
    ] == outcomes
    assert ("decisions", "m", 1) == (path, body["model"], body["seed"])
    assert ["predicate", "choice"] == [each["type"] for each in body["questions"]]


@pytest.mark.parametrize("body", ["sglang", "systemone"])
async def test_the_mass_of_the_labels_makes_them_probabilities_over_the_vocabulary(body):
    """It stands with the answer in SGLang's body, and in vLLM's diagnostics."""
    answer = {
        "answers": {"0": {"probabilities": SHARES, "label_mass": 0.5}},
        "diagnostics": {"0": {"label_mass": 0.5}},
    }
    [outcome], [(path, _)] = await answered(answer, YES_NO, body=body)

    assert (log(0.4), log(0.1)) == (outcome.log_p_yes, outcome.log_p_no)
    assert {"sglang": "decisions", "systemone": "systemone"}[body] == path


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, "no probabilities"),
        ({"answers": []}, "no probabilities"),
        ({"answers": [{"probability": None}]}, "not a number"),
        ({"answers": [{"probability": True}]}, "not a number"),
        ({"answers": [{"probability": 1.5}]}, "outside 0 to 1"),
        ({"answers": [{"probability": 0}]}, "a probability of 0"),
        ({"answers": [{"probability": 1.0}]}, "a probability of 0"),
        ({"answers": [{"probability": 0.5, "name": "1"}]}, "another question"),
    ],
)
async def test_an_answer_without_a_probability_is_an_error(answer, said):
    """Never a number of our own; a yes of exactly 1 has a no of 0."""
    [[error], _] = await answered(answer, YES_NO)

    assert isinstance(error, UpstreamError)
    assert said in str(error)


async def test_a_bad_answer_is_the_error_of_its_question_alone():
    """The other questions of the request have their probabilities."""
    refused = {"type": "refusal", "name": "0"}
    answer = {"answers": [refused, {"probability": 1.0}, {"probability": 0.8}]}
    [first, second, third], _ = await answered(answer, YES_NO, YES_NO, YES_NO)

    assert (ModelError, UpstreamError) == (type(first), type(second))
    assert Likelihood((log(0.8),), log(0.8), log(1 - 0.8)) == third


async def test_a_refused_question_that_was_sent_alone_raises():
    """As any call that a model cannot answer."""

    async def post(path, content):
        return {"answers": [{"type": "refusal", "name": None}]}

    made = model()
    with pytest.raises(ModelError, match="refused"):
        await made.answer(made.prepare(YES_NO), post)


async def test_sglangs_structured_decisions_have_the_mass_beside_the_answer():
    """And of yes or no one probability alone; the mass may exceed 1 by rounding."""
    answer = {
        "answers": {
            "0": {"type": "noul", "noul": 0.75, "x_label_mass": 0.5},
            "1": {"type": "choice", "probabilities": {"red": 0.75, "blue": 0.25}, "x_label_mass": 1.0000002},
        }
    }
    [first, second], _ = await answered(answer, YES_NO, CHOICE, body="systemone")

    assert (log(0.375), log(0.125)) == (first.log_p_yes, first.log_p_no)
    assert Choices(((log(0.75),), (log(0.25),))) == second


@pytest.mark.parametrize(
    "shares", [{"yes": 0.8}, {"yes": 0.8, "no": 0.3}, {"yes": 0.5, "no": 0.3, "maybe": 0.2}]
)
async def test_what_is_no_distribution_over_the_options_is_an_error(shares):
    """One is missing, they do not add up, or there is one too many."""
    answer = {"answers": {"0": {"probabilities": shares, "label_mass": 1.0}}}
    [[error], _] = await answered(answer, YES_NO, body="sglang")

    assert isinstance(error, UpstreamError)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (LikelihoodCall(PICTURE, "What is it?", "a dog"), "likelihood of Yes alone"),
        (AnswerCall(PICTURE, "What is it?"), "no answers in words"),
        (FirstTokenCall(PICTURE, "What is it?", ("a",)), "no answers in words"),
        (LabelCall(PICTURE, "How good?", ("A", "B"), ("before",)), "no examples before it"),
        (ChoiceCall(PICTURE, "Which?", ("a", "a")), "all different"),
        (ChoiceCall(PICTURE, "Which?", ("a",)), "two or more"),
        (ChoiceCall(PICTURE, "Which?", tuple(map(str, range(27)))), "27 choices"),
    ],
)
def test_what_a_decision_cannot_be_is_refused(call, said):
    """Before anything is sent."""
    with pytest.raises(ModelError, match=said):
        model("systemone").prepare(call)


def test_a_server_that_ignores_pictures_answers_both_known_questions_alike():
    """They differ in the picture alone."""
    prepared = [model("systemone").prepare(call) for call in model().known_calls().calls]
    first, second = (each.data for each in prepared)

    assert first.question == second.question
    assert first.uri != second.uri


def test_the_table_is_what_the_model_is_made_of():
    """And its body is one of three."""
    family = families()["decisions"]
    table = {"family": family.name, "role": "vqa", "base_url": "http://127.0.0.1:1/v1", "model": "m"}
    made = family.load("vqa", family.settings(**table, id="clef", revision="7", max_questions=9))

    assert ("clef@7", 9) == (made.info.label, made.most_together)
    with pytest.raises(ValueError, match="body"):
        family.settings(**table, body="other")
