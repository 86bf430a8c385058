"""TIFA with free-form answers: a choice that the model writes, or the one with the nearest embedding."""

import numpy as np
import pytest

from models.core.calls import TextCall
from models.core.outcomes import Embedding, Text
from tests.support.fakes import FakeEmbedding
from tests.support.pictures import item
from tests.support.questions import noted, scored

pytestmark = pytest.mark.anyio

COLOUR = {"id": 1, "text": "What color is the dog?", "choices": ["Red", "dark blue"], "expected": "Red"}
THERE = {"id": 2, "text": "Is there a dog?", "choices": ["yes", "no"], "expected": "yes"}
NEAR = {"crimson": 0.1, "red": 0.0, "navy": 1.4, "dark blue": 1.5}  # angles


@pytest.fixture
def say(fakes):
    """Have the VQA model write an answer to each question, and embed texts by an angle."""
    said = {"a dog?": "Yes.", "the dog?": "crimson", "the sky?": "navy"}
    fakes["vqa"].answer = lambda call: Text(
        next((text for question, text in said.items() if question in call.question), "-")
    )
    fakes["embedding"] = FakeEmbedding()
    fakes["embedding"].answer = lambda call: Embedding(
        np.array([np.cos(NEAR.get(call.text, 3)), np.sin(NEAR.get(call.text, 3))], np.float32)
    )
    return said


async def tifa(client, *questions):
    return await scored(client, "tifa", item("a red dog"), question_set=[*questions], answers="free_form")


async def test_a_text_that_is_no_choice_is_the_nearest_one(serve, fakes, say):
    """Case and a full stop do not matter for one that is."""
    async with serve() as client:
        result = await tifa(client, COLOUR, THERE, {**COLOUR, "id": 3, "text": "What color is the sky?"})

    assert pytest.approx(2 / 3) == result["scores"]["tifa"]
    asked = result["details"]["tifa"]["questions"]
    assert [("Red", "crimson"), ("yes", "Yes."), ("dark blue", "navy")] == [
        (question["answer"], question["written"]) for question in asked
    ]
    ended = "Answer the question using a single word or phrase."
    assert all(call.question.endswith(ended) for call in fakes["vqa"].calls)
    assert all(isinstance(call, TextCall) for call in fakes["embedding"].calls)


@pytest.mark.parametrize(("angle", "clear"), [(0.1, True), (0.72, False), (0.74, False)])
async def test_a_text_that_is_about_as_near_to_another_choice_has_a_warning(
    serve, say, monkeypatch, angle, clear
):
    """With the text, the choice and its lead: a real model takes emerald for red."""
    say["the dog?"] = "emerald"
    monkeypatch.setitem(NEAR, "emerald", angle)
    options = {"question_set": [COLOUR, THERE], "answers": "free_form"}
    async with serve() as client:
        result, warnings = await noted(client, "tifa", item("a red dog"), **options)

    assert 1 == result["scores"]["tifa"]
    lead = np.cos(angle) - np.cos(1.5 - angle)
    said = f"question 1: the answer 'emerald' is no choice, and Red is nearest by {lead:.2g} only"
    assert clear is (warnings == [])
    assert clear or said in warnings[0]


async def test_without_a_model_for_sentences_it_is_an_error(serve, fakes, say):
    """Other answers need none."""
    del fakes["embedding"]
    options = {"question_set": [COLOUR], "answers": "free_form"}
    body = {"items": [item("a red dog")], "metrics": ["tifa"], "options": {"tifa": options}}
    async with serve() as client:
        answer = await client.post("/score", json=body)

    assert (503, "not_ready") == (answer.status_code, answer.json()["code"])
    assert "no embedding model is configured" in answer.json()["detail"]


async def test_an_empty_answer_is_an_error(serve, say):
    """It is near to nothing."""
    say["the dog?"] = " "
    async with serve() as client:
        result = await tifa(client, COLOUR)

    assert "unanswered" == result["errors"]["tifa"]["code"]
