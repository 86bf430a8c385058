"""A decision endpoint as a VQA model."""

import asyncio

import pytest

from models.core.contract import SAME_ANSWERS
from tests.support.fake_openai import decided, decisions
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


async def test_a_server_that_ignores_pictures_is_not_served(with_decisions, server):
    """Its answers depend on the text alone, so they would be scores of no picture."""
    server.decide_known = decisions
    async with with_decisions() as client:
        answer = await client.post("/score", json={"items": [item("a dog")], "metrics": ["vqascore"]})

    assert (503, "not_ready") == (answer.status_code, answer.json()["code"])
    assert SAME_ANSWERS in answer.json()["detail"]
    assert not server.bodies


async def test_a_server_that_takes_no_pictures_says_so(with_decisions, server):
    """`/readyz` has its message, since the question is the service's own."""
    server.decide_known = lambda body: (400, {"error": {"message": "this model does not take image inputs"}})
    async with with_decisions() as client:
        ready = await client.get("/readyz")

    assert 503 == ready.status_code
    assert "returned status 400: this model does not take image inputs" in ready.json()["detail"]


async def test_the_reason_of_a_rejection_is_for_its_caller(with_decisions, server):
    """`/health` has the status alone: the message may repeat a caller's texts."""
    async with with_decisions() as client:
        errors = [(await asked(client, f"Is there a BAD {n}?"))["errors"]["dsg"] for n in range(3)]
        health = (await client.get("/health")).json()

    assert errors[0]["detail"].endswith("returned status 400: a question is too long")
    assert health["degraded"]["dsg"].endswith("failed its last 3 calls: returned status 400")


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
