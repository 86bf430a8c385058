"""A VLM behind an OpenAI-compatible server, as a VQA model."""

import math
import threading

import pytest

from tests.conftest import item
from tests.support.fake_openai import said, weighed

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"


async def vqa(client, **more):
    body = {"items": [item(PROMPT)], "metrics": ["vqascore"], "explain": True, **more}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code
    return answer.json()["results"][0]


async def test_label_probabilities_come_from_named_tokens(with_vlm, server):
    """The image stands before the text, in the model's own words, and the labels are asked for by id."""
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0, id9=-0.1))
    async with with_vlm() as client:
        result = await vqa(client)

    assert pytest.approx(math.exp(-0.5)) == result["scores"]["vqascore"]
    assert pytest.approx(1.5) == result["details"]["vqascore"]["logit"]
    assert pytest.approx(math.exp(-0.5) + math.exp(-2)) == result["details"]["vqascore"]["label_mass"]
    [body] = server.bodies
    image, text = body["messages"][0]["content"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert f"Is {PROMPT} here?" == text["text"]
    assert ([5, 6], True, 1) == (body["logprob_token_ids"], body["logprobs"], body["max_tokens"])


async def test_a_server_without_token_ids_is_read_by_its_likeliest_tokens(with_vlm, server):
    """Its labels may have a space before them; the likeliest form counts."""
    server.tokens = None
    server.chat = lambda body: (200, weighed(**{"Yes": -3.0, " Yes": -0.5, "No": -1.0}))
    async with with_vlm() as client:
        result = await vqa(client)

    assert pytest.approx(math.exp(-0.5)) == result["scores"]["vqascore"]
    assert "logprob_token_ids" not in server.bodies[0]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (weighed(Yes=-0.5), "no log-probability for 'No'"),
        (weighed(Yes=-0.5, No=-9999.0), "of 'No' that is not finite"),
        (said("Yes"), "returned no log-probabilities"),
        ({"choices": 3}, "returned no choices"),
    ],
)
async def test_a_label_without_a_probability_is_an_error_and_never_0(with_vlm, server, answer, told):
    """`upstream_failed`, and no score."""
    server.chat = lambda body: (200, answer)
    async with with_vlm() as client:
        result = await vqa(client)

    assert {} == result["scores"]
    assert "upstream_failed" == result["errors"]["vqascore"]["code"]
    assert told in result["errors"]["vqascore"]["detail"]


async def test_an_answer_of_two_tokens_is_refused(with_vlm, server):
    """A VLM's likelihood is one token's; the caller learns that instead of half a number."""
    async with with_vlm() as client:
        result = await vqa(client, options={"vqascore": {"answer": "maybe so"}})

    assert "call_refused" == result["errors"]["vqascore"]["code"]
    assert [] == server.bodies


async def test_one_failing_call_spares_its_neighbours(with_vlm, server):
    """Failures are per call."""
    bad = "a bad one"
    server.chat = lambda body: (
        (500, {}) if bad in body["messages"][0]["content"][1]["text"] else (200, weighed(id5=-0.5, id6=-2.0))
    )
    async with with_vlm() as client:
        body = {"items": [item(PROMPT), item(bad), item("a third")]}
        results = (await client.post("/score", json=body)).json()["results"]

    assert [1, 0, 1] == [len(result["scores"]) for result in results]
    assert "upstream_failed" == results[1]["errors"]["vqascore"]["code"]


async def test_no_more_calls_are_under_way_than_allowed(with_vlm, server):
    """`max_in_flight` of them are, and the rest wait their turn."""
    lock, pair, under_way, most = threading.Lock(), threading.Barrier(2), 0, 0

    def chat(body):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        pair.wait(10)  # nobody is answered before a second one is here
        with lock:
            under_way -= 1
        return 200, weighed(id5=-0.5, id6=-2.0)

    server.chat = chat
    async with with_vlm(max_in_flight=2) as client:
        body = {"items": [item(f"{n}") for n in range(6)]}
        answer = (await client.post("/score", json=body)).json()
        metrics = (await client.get("/metrics")).text

    assert not answer["partial"]
    assert 2 == most
    assert 'calls_total{lane="interactive",model="vqa",result="ok"} 6.0' in metrics
