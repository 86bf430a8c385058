"""VQ²: pairs of a question and an answer, each put to the model as one question."""

import math

import pytest

from models.core.calls import AnswerCall, LikelihoodCall
from models.core.outcomes import Likelihood, Text
from tests.support.pictures import b64, item, png
from tests.support.questions import scored, written

pytestmark = pytest.mark.anyio

PROMPT = "a red dog and a cat"
PAIRS = [
    {"id": 1, "text": "What is there?", "expected": "a red dog"},
    {"id": 2, "text": "What is there?", "expected": "a cat"},
]


def answer(call):
    """A dog is likelier than a cat, and a good part of the mass is on neither yes nor no."""
    yes, no = (0.6, 0.2) if "dog" in call.question else (0.1, 0.4)
    return Likelihood((math.log(yes),), math.log(yes), math.log(no))


async def test_each_pair_counts_p_yes_over_the_vocabulary_or_among_yes_and_no(serve, fakes):
    """The paper's is over the vocabulary."""
    fakes["vqa"].answer = answer
    async with serve() as client:
        plain = await scored(client, "vq2", item(PROMPT), question_set=PAIRS)
        shares = await scored(client, "vq2", item(PROMPT), question_set=PAIRS, normalization="yes_no")

    assert 0.35 == pytest.approx(plain["scores"]["vq2"])
    assert (0.75 + 0.2) / 2 == pytest.approx(shares["scores"]["vq2"])
    dog, cat = plain["details"]["vq2"]["questions"]
    assert [0.6, 0.8] == pytest.approx([dog["score"], dog["label_mass"]])
    assert [0.1, 0.5] == pytest.approx([cat["score"], cat["label_mass"]])


async def test_with_generated_answers_a_pair_counts_1_if_the_model_writes_yes(serve, fakes):
    """As in the released code; nothing is known of probabilities then."""
    fakes["vqa"].answer = lambda call: Text("Yes, it is." if "dog" in call.question else "no")
    async with serve() as client:
        result = await scored(client, "vq2", item(PROMPT), question_set=PAIRS, answers="generated")
        calls = [(type(call), call.question) for call in fakes["vqa"].calls]
        made, stored = [
            await scored(client, "vq2", item(PROMPT, b64(png(colour))), answers="generated")
            for colour in ("red", "blue")
        ]

    assert ["miss", "hit"] == [each["cache"]["vq2"] for each in (made, stored)]
    assert 0.5 == result["scores"]["vq2"]
    assert [(1, "a red dog", 1.0, None), (2, "a cat", 0.0, None)] == [
        tuple(asked[name] for name in ("id", "expected", "score", "label_mass"))
        for asked in result["details"]["vq2"]["questions"]
    ]
    assert [
        (AnswerCall, 'is "a red dog" true for "What is there?" in this image?'),
        (AnswerCall, 'is "a cat" true for "What is there?" in this image?'),
    ] == calls


async def test_a_pair_is_asked_in_the_papers_words_or_in_the_requests(serve, fakes):
    """What a question or an answer says is never taken for a place in the template."""
    tricky = [{"id": 1, "text": "Is {answer} it?", "expected": "{question}"}]
    async with serve() as client:
        await scored(client, "vq2", item(PROMPT), question_set=PAIRS[:1])
        await scored(client, "vq2", item(PROMPT), question_set=tricky, question="Q: {question} A: {answer}")

    assert [
        'is "a red dog" true for "What is there?" in this image?',
        "Q: Is {answer} it? A: {question}",
    ] == [call.question for call in fakes["vqa"].calls]
    assert {(LikelihoodCall, "Yes")} == {(type(call), call.answer) for call in fakes["vqa"].calls}


@pytest.mark.parametrize("template", ["{}", "{answer}?", "{question}?", ""])
async def test_a_template_without_both_places_is_refused(serve, template):
    """The refusal names the field."""
    body = {"items": [item()], "metrics": ["vq2"], "options": {"vq2": {"question": template}}}
    async with serve() as client:
        refused = await client.post("/score", json=body)

    assert 422 == refused.status_code
    assert "/options/vq2/question" in refused.text
    assert not template or refused.json()["detail"].endswith(
        ": must contain {answer} and {question}, where they go"
    )


async def test_a_question_may_have_two_answers_and_a_pair_not_be_there_twice(serve):
    """ "What is there?" is another question for a cat."""
    twice = [{**PAIRS[0], "id": n} for n in (1, 2)]
    body = {"items": [item()], "metrics": ["vq2"], "options": {"vq2": {"question_set": twice}}}
    async with serve() as client:
        both = await scored(client, "vq2", item(PROMPT), question_set=PAIRS)
        refused = await client.post("/score", json=body)

    assert "vq2" in both["scores"]
    assert (422, True) == (refused.status_code, "asked twice" in refused.text)


async def test_the_spans_of_a_written_set_are_the_words_that_it_covers(serve):
    """Each is the expected answer, and the phrase of the prompt that it is about."""
    async with serve() as client:
        made = (await written(client, "vq2", "a red dog")).json()["sets"][0]
        result = await scored(client, "vq2", item("a red dog"))

    assert [("What is there?", "red dog", "red dog")] == [
        (q["text"], q["expected"], q["phrase"]) for q in made["questions"]
    ]
    assert ["a"] == result["details"]["vq2"]["uncovered"]
