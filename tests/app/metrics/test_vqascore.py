"""VQAScore's questions and answers: templates of both (Tables 13 and 14 of its paper)."""

import math

import pytest

from models.families.fake.model import chance
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


async def scored(client, prompt="a red square", **options):
    body = {"items": [item(prompt)], "options": {"vqascore": options}, "explain": True}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"][0]


async def test_an_answer_may_hold_the_prompt(serve, fakes):
    """VisualGPTScore: how likely the prompt is as the answer to a question that does not mention it."""
    async with serve() as client:
        result = await scored(client, question="Describe the picture.", answer="It shows {}.")

    [call] = fakes["vqa"].calls
    assert ("Describe the picture.", "It shows a red square.") == (call.question, call.answer)
    assert "It shows a red square." == result["details"]["vqascore"]["answer"]
    assert result["details"]["vqascore"]["likelihood"] == result["scores"]["vqascore"]


async def test_question_and_answer_may_both_hold_the_prompt(serve, fakes):
    """And the placeholders of a prompt that has some itself are text."""
    async with serve() as client:
        await scored(client, "a {} square", question='Does it show "{}"?', answer="{}")

    [call] = fakes["vqa"].calls
    assert ('Does it show "a {} square"?', "a {} square") == (call.question, call.answer)


async def test_a_question_without_the_prompt_needs_an_answer_with_it(serve):
    """Else nothing that the model sees depends on the prompt."""
    options = [
        {"question": "Describe it."},
        {"question": "Describe it.", "answer": "Yes"},
        {"question": "{} or {}?", "answer": "{}"},
        {"answer": "{} and {}"},
    ]
    async with serve() as client:
        answers = [
            await client.post("/score", json={"items": [item()], "options": {"vqascore": one}})
            for one in options
        ]

    assert [422] * 4 == [answer.status_code for answer in answers]
    assert ["question", "question", "question", "answer"] == [
        answer.json()["errors"][0]["pointer"].rpartition("/")[2] for answer in answers
    ]


async def test_negative_no_is_minus_the_probability_of_no(serve, fakes):
    """-P("No") of the first token, whatever `answer` and `normalization` are; one call serves all outputs."""
    async with serve() as client:
        plain = await scored(client)
        negative = await scored(client, output="negative_no", normalization="product")

    [call] = fakes["vqa"].calls
    no = 1 - chance(call.image.digest, call.question)
    assert -no == pytest.approx(negative["scores"]["vqascore"])
    assert -math.inf < negative["scores"]["vqascore"] <= 0
    assert negative["scores"]["vqascore"] == -plain["details"]["vqascore"]["p_no"]
    assert "hit" == negative["cache"]["vqascore"]
