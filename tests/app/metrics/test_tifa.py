"""TIFA: choices fold into a score, and questions that the prompt does not confirm are left out."""

import json
import math

import pytest

from models.core.calls import ChoiceCall, FirstTokenCall, LikelihoodCall
from models.core.outcomes import Choices, FirstToken, Likelihood
from tests.support.pictures import item
from tests.support.questions import scored, written

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
COLOUR = {
    "id": 1,
    "text": "What color is the dog?",
    "choices": ["red", "dark blue"],
    "expected": "red",
    "phrase": "red",
}
THERE = {"id": 2, "text": "Is there a dog?", "choices": ["yes", "no"], "expected": "yes", "phrase": "dog"}


def entry(text, answer, choices=("yes", "no"), **more):
    return {"entity": "dog", "type": "animal", "text": text, "choices": [*choices], "answer": answer, **more}


def written_for(prompt, *entries):
    """What the LLM writes about *prompt*, by what it is asked."""
    return {prompt: json.dumps({"questions": [*entries]})}


def confirmed(prompt, listed, *answers):
    """What it answers to the questions that it wrote."""
    return {f"{prompt}\nquestions: {listed}": json.dumps({"answers": [*answers]})}


TWO = written_for(PROMPT, entry("Is there a dog?", "yes"), entry("Is it wet?", "yes"))
LISTED = "1 Is there a dog? yes, no; 2 Is it wet? yes, no"


async def test_each_question_is_one_call_and_its_likeliest_choice_the_answer(serve, fakes):
    """By the mean over a choice's tokens; the words of the prompt get the scores of their questions."""
    fakes["vqa"].answer = lambda call: (
        Choices(((-1.0,), (-0.5, -0.7))) if isinstance(call, ChoiceCall) else Likelihood((-0.1,), -0.1, -2.0)
    )
    async with serve() as client:
        result = await scored(client, "tifa", item(PROMPT), question_set=[COLOUR, THERE])

    assert 0.5 == result["scores"]["tifa"]
    first, second = result["details"]["tifa"]["questions"]
    assert (("dark blue", 0), ("yes", 1)) == (
        (first["answer"], first["score"]),
        (second["answer"], second["score"]),
    )
    red = math.exp(-1.0) / (math.exp(-1.0) + math.exp(-0.6))
    assert {"red": red, "dark blue": 1 - red} == pytest.approx(first["probabilities"])
    assert [
        {"word": "a", "score": None},
        {"word": "red", "score": 0},
        {"word": "dog", "score": 1},
    ] == result["details"]["tifa"]["words"]
    assert [2] == [len(batch) for batch in fakes["vqa"].batches if len(batch) > 1]


async def test_choices_are_asked_in_the_models_own_words_or_in_the_requests(serve, fakes):
    """Yes and no are always asked as all metrics ask them."""
    async with serve() as client:
        await scored(client, "tifa", item(PROMPT), question_set=[COLOUR, THERE])
        await scored(client, "tifa", item(PROMPT), question_set=[COLOUR, THERE], question="Look: {}")

    asked = [call.question for call in fakes["vqa"].calls]
    assert {
        "What color is the dog? Answer the question using a single word or phrase.",
        "Look: What color is the dog?",
        "Is there a dog? Please answer yes or no.",
    } == set(asked)
    assert 3 == len(asked)


async def test_questions_are_written_with_types_choices_and_phrases(serve):
    """`POST /questions` shows them."""
    async with serve() as client:
        [made] = (await written(client, "tifa", PROMPT)).json()["sets"]

    assert ("tifa", "Is there a red dog?") == (made["style"], made["questions"][0]["text"])
    assert ("object", "red dog", ["yes", "no"], "yes") == tuple(
        made["questions"][0][name] for name in ("kind", "phrase", "choices", "expected")
    )


async def test_with_verify_questions_that_the_prompt_does_not_confirm_are_left_out(serve, fakes):
    """Under a key of its own: the set without verification stays as it is."""
    fakes["questions"].texts = {**TWO, **confirmed(PROMPT, LISTED, "Yes", "unknown")}
    async with serve() as client:
        plain = await scored(client, "tifa", item(PROMPT))
        verified = await scored(client, "tifa", item(PROMPT), verify=True)
        again = await scored(client, "tifa", item(PROMPT), verify=True)
        made = (await written(client, "tifa", PROMPT, tifa={"verify": True})).json()["sets"][0]

    texts = [[q["text"] for q in r["details"]["tifa"]["questions"]] for r in (plain, verified)]
    assert [["Is there a dog?", "Is it wet?"], ["Is there a dog?"]] == texts
    assert ["miss", "miss", "hit"] == [result["cache"]["tifa"] for result in (plain, verified, again)]
    assert 3 == len(fakes["questions"].calls)
    assert (True, made["id"]) == (made["cached"], verified["details"]["tifa"]["question_set"])


async def test_where_no_question_is_confirmed_there_is_no_score(serve, fakes):
    """An error that says so, and never 0."""
    fakes["questions"].texts = {**TWO, **confirmed(PROMPT, LISTED, "no", "unknown")}
    async with serve() as client:
        result = await scored(client, "tifa", item(PROMPT), verify=True)

    assert {} == result["scores"]
    assert "no_questions" == result["errors"]["tifa"]["code"]


@pytest.mark.parametrize("answers", [("yes",), ("yes", "yes", "yes"), ("yes", 1)])
async def test_a_verification_that_does_not_answer_each_question_is_an_error(serve, fakes, answers):
    """The LLM is asked once more, from the start."""
    fakes["questions"].texts = {**TWO, **confirmed(PROMPT, LISTED, *answers)}
    async with serve() as client:
        result = await scored(client, "tifa", item(PROMPT), verify=True)

    assert "question_llm_failed" == result["errors"]["tifa"]["code"]
    assert 4 == len(fakes["questions"].calls)


async def test_sets_of_another_style_are_refused(serve):
    """A pinned one by its style, and questions without choices by their field."""
    async with serve() as client:
        made = (await written(client, "dsg", PROMPT)).json()["sets"][0]
        pinned = await scored(client, "tifa", item(PROMPT), question_set=made["id"])
        bare = [{"id": 1, "text": "Is there a dog?", "expected": "yes"}]
        body = {"items": [item()], "metrics": ["tifa"], "options": {"tifa": {"question_set": bare}}}
        refused = await client.post("/score", json=body)

    assert ("invalid", True) == (
        pinned["errors"]["tifa"]["code"],
        "style dsg, and not tifa" in pinned["errors"]["tifa"]["detail"],
    )
    assert 422 == refused.status_code
    assert "/options/tifa/question_set/0/choices" in refused.text


async def test_equal_questions_about_one_picture_are_answered_once_for_all_metrics(serve, fakes):
    """Both ask for the dog and the cat by yes or no: two calls of the model, not four."""
    async with serve() as client:
        body = {"items": [item("a red dog and a blue cat")], "metrics": ["dsg", "tifa"]}
        [result] = (await client.post("/score", json=body)).json()["results"]

    assert {"dsg", "tifa"} == result["scores"].keys()
    calls = fakes["vqa"].calls
    assert {LikelihoodCall} == {type(call) for call in calls}
    assert ["Is there a blue cat?", "Is there a red dog?"] == sorted(
        call.question.removesuffix(" Please answer yes or no.") for call in calls
    )


@pytest.mark.parametrize("metric", ["tifa", "gecko", "soft_tifa"])
async def test_a_capital_of_a_choice_changes_no_score(serve, fakes, metric):
    """For a model to which a word with a capital is unlikely."""

    def answer(call):
        if isinstance(call, FirstTokenCall):
            logs = (math.log(0.7 if written == "red" else 0.01) for written in call.answers)
            return FirstToken(tuple(logs), tuple(map(hash, call.answers)))
        if isinstance(call, ChoiceCall):
            return Choices(
                tuple((-3.0 if choice == "Red" else -1.0 - len(choice) / 10,) for choice in call.choices)
            )
        return Likelihood((-0.1,), -0.1, -2.0)

    fakes["vqa"].answer = answer
    async with serve() as client:
        small, capital = [
            await scored(
                client,
                metric,
                item(PROMPT),
                question_set=[{**COLOUR, "choices": [red, "dark blue"], "expected": red}],
            )
            for red in ("red", "Red")
        ]

    assert small["scores"] == pytest.approx(capital["scores"])
    assert small["scores"][metric] > 0.5
