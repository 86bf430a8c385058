"""Soft-TIFA: how likely the expected answer is, in all the ways of writing it."""

import math

import pytest

from models.core.calls import FirstTokenCall
from models.core.outcomes import FirstToken
from tests.support.pictures import item
from tests.support.questions import scored

pytestmark = pytest.mark.anyio

PROMPT = "four red dogs"
ASKED = [
    {"id": 1, "text": "How many dogs are there?", "expected": "four"},
    {"id": 2, "text": "What color are they?", "expected": "red", "choices": ["red", "blue"]},
]


async def test_a_question_counts_the_probability_of_its_expected_answers_first_tokens(serve, fakes):
    """Each token once, over the whole vocabulary; asked for in one call, in one word."""

    def answer(call):
        first = 0.5 if "four" in call.answers else 0.25
        tokens = tuple(1 if text.strip()[0].islower() else 2 for text in call.answers)
        return FirstToken(tuple(math.log(first if t == 1 else 0.125) for t in tokens), tokens)

    fakes["vqa"].answer = lambda call: (
        answer(call) if isinstance(call, FirstTokenCall) else type(fakes["vqa"]).answer(fakes["vqa"], call)
    )
    async with serve() as client:
        plain = await scored(client, "soft_tifa", item(PROMPT), question_set=ASKED)
        whole = await scored(client, "soft_tifa", item(PROMPT), question_set=ASKED, mean="geometric")

    four, red = plain["details"]["soft_tifa"]["questions"]
    assert [0.625, 0.375] == pytest.approx([four["score"], red["score"]])
    assert ["red", " red", "Red", " Red"] == red["variants"]
    assert 0.5 == pytest.approx(plain["scores"]["soft_tifa"])
    assert math.sqrt(0.625 * 0.375) == pytest.approx(whole["scores"]["soft_tifa"])
    assert [
        "How many dogs are there? Answer in one word.",
        "What color are they? Answer in one word.",
    ] == [call.question for call in fakes["vqa"].calls]


async def test_it_asks_the_sets_that_were_written_for_tifa(serve, fakes):
    """The question LLM is called once for both, and each can pin the other's set."""
    async with serve() as client:
        hard = await scored(client, "tifa", item("a red dog"))
        soft = await scored(client, "soft_tifa", item("a red dog"))
        id = hard["details"]["tifa"]["question_set"]
        pinned = await scored(client, "soft_tifa", item("a red dog"), question_set=id)

    assert ["miss", "hit"] == [hard["cache"]["tifa"], soft["cache"]["soft_tifa"]]
    assert 1 == len(fakes["questions"].calls)
    assert id == soft["details"]["soft_tifa"]["question_set"]
    assert soft["scores"] == pinned["scores"]
