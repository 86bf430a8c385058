"""A decision endpoint as a VQA model."""

import asyncio

import pytest

from tests.support.fake_openai import decided
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

NOUNS = ("dog", "cat", "cup", "car", "bus", "cow", "hat", "pen")
QUESTIONS = [{"id": number, "text": f"Is there a {noun}?"} for number, noun in enumerate(NOUNS, 1)]


async def scores(client):
    """The scores of the eight questions."""
    options = {"dsg": {"question_set": QUESTIONS, "answers": "soft"}}
    body = {"items": [item("a dog")], "metrics": ["dsg"], "options": options, "explain": True}
    [result] = (await client.post("/score", json=body)).json()["results"]
    return [question["score"] for question in result["details"]["dsg"]["questions"]]


EXPECTED = [
    decided({"type": "predicate", "instructions": f"{each['text']} Please answer yes or no."})["probability"]
    for each in QUESTIONS
]


async def test_all_questions_about_a_picture_are_one_request(with_decisions, server):
    """Each has its own probability, after the known questions were answered."""
    async with with_decisions() as client:
        found = await scores(client)

    assert pytest.approx(EXPECTED) == found
    assert [8] == [len(body["questions"]) for body in server.bodies]
    assert server.checks


async def test_more_questions_than_the_server_takes_are_several_requests(with_decisions, server):
    """None of them has more."""
    async with with_decisions(max_questions=3) as client:
        found = await scores(client)

    assert pytest.approx(EXPECTED) == found
    assert [2, 3, 3] == sorted(len(body["questions"]) for body in server.bodies)


async def asked(client, *texts):
    """The first result of a request with those questions."""
    listed = [{"id": number, "text": text} for number, text in enumerate(texts, 1)]
    options = {"dsg": {"question_set": listed, "answers": "soft"}}
    body = {"items": [item("a dog")], "metrics": ["dsg"], "options": options}
    return (await client.post("/score", json=body)).json()["results"][0]


@pytest.mark.parametrize(("word", "code"), [("REFUSE", "call_refused"), ("BAD", "upstream_failed")])
async def test_a_question_that_the_server_does_not_take_costs_no_other_caller_a_score(
    with_decisions, server, word, code
):
    """Two requests about one picture share a request to the server; only the bad question has an error."""
    async with with_decisions() as client:
        good, bad = await asyncio.gather(
            asked(client, "Is there a dog?", "Is there a cat?"), asked(client, f"Is there a {word}?")
        )

    assert 3 == len(server.bodies[0]["questions"])
    assert "dsg" in good["scores"]
    assert code == bad["errors"]["dsg"]["code"]
