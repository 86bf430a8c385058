"""A multimodal reranker behind vLLM's `/v1/score`."""

import json
import math

import pytest

from models.families.openai.rerank import NO_ACTIVATION, NO_INSTRUCTION, SAME_IMAGES, sigmoid
from service.serving.backends.trust import OTHERS_BESIDE
from tests.support.fake_openai import KNOWN
from tests.support.pictures import item
from tests.support.questions import scored

pytestmark = pytest.mark.anyio


def answered(score):
    """vLLM's answer for one pair."""
    return {"object": "list", "model": "m", "data": [{"index": 0, "object": "score", "score": score}]}


def sound(body):
    """A reranker that sees pictures, and reads its instruction and `use_activation`."""
    logit = (2.0 if KNOWN in json.dumps(body) else -2.0) + len(body.get("instruction", "")) / 10
    return 200, answered(sigmoid(logit) if body["use_activation"] else logit)


async def rerank(client, **options):
    """The result of one picture."""
    return await scored(client, "rerankscore", item("a red dog"), **options)


async def degraded(client):
    """Why the metric is not served."""
    return (await client.get("/health")).json()["degraded"]["rerankscore"]


async def test_a_pair_is_a_request_whose_query_is_the_prompt(with_reranker, server):
    """The score is the server's, between 0 and 1, and `use_activation` is in the request."""
    server.known, server.rerank = sound, lambda body: (200, answered(0.75))
    async with with_reranker() as client:
        result = await rerank(client)

    [body] = server.bodies
    [part] = body["data_2"]["content"]
    assert (0.75, {"output": "probability"}) == (
        result["scores"]["rerankscore"],
        result["details"]["rerankscore"],
    )
    assert ("a red dog", "image_url", True) == (body["data_1"], part["type"], body["use_activation"])
    assert part["image_url"]["url"].startswith("data:image/png;base64,")
    assert "instruction" not in body


async def test_the_picture_may_be_the_query(with_reranker, server):
    """And an instruction of the settings is in each request."""
    server.known, server.rerank = sound, lambda body: (200, answered(0.75))
    async with with_reranker(query="image", instruction="Find captions.") as client:
        await rerank(client)

    [body] = server.bodies
    assert ("a red dog", "Find captions.") == (body["data_2"], body["instruction"])
    assert "content" in body["data_1"]


async def test_a_logit_is_returned_without_a_limit(with_reranker, server):
    """The score of the first one is fetched as well, to see that the server reads `use_activation`."""
    server.known = sound
    server.rerank = lambda body: (200, answered(1.0 if body["use_activation"] else 20.5))
    async with with_reranker() as client:
        values = [(await rerank(client, output="logit"))["scores"]["rerankscore"] for _ in range(2)]

    assert [20.5, 20.5] == values
    assert [False, True] == [body["use_activation"] for body in server.bodies][:2]


@pytest.mark.parametrize("score", [0.9, 0.66])
async def test_a_server_that_returns_a_probability_for_a_logit_is_an_error(with_reranker, server, score):
    """An older one, for example, has the field by another name; 0.66 is almost its own sigmoid."""
    server.known, server.rerank = sound, lambda body: (200, answered(score))
    async with with_reranker() as client:
        result = await rerank(client, output="logit")

    assert {} == result["scores"]
    assert NO_ACTIVATION in result["errors"]["rerankscore"]["detail"]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": [{"score": None}]},
        {"data": [{"score": True}]},
        {"data": [{"score": "0.5"}]},
        {"data": [{"score": 1.5}]},
        {"data": [{"score": -0.1}]},
        {"data": [{"score": float("nan")}]},
        {"data": [{"score": 0.5}, {"score": 0.5}]},
    ],
    ids=str,
)
async def test_anything_but_the_score_of_one_pair_is_an_error(with_reranker, server, answer):
    """Never a number."""
    server.known, server.rerank = sound, lambda body: (200, answer)
    async with with_reranker() as client:
        result = await rerank(client)

    assert {} == result["scores"]
    assert "upstream_failed" == result["errors"]["rerankscore"]["code"]


def near_half(body):
    """What a wrong template gives: about 0.5 for every pair."""
    return 200, answered(0.5 + len(json.dumps(body)) % 7 / 1e4)


class Together:
    """A server whose scores depend on the number of requests before: the third and later ones are others."""

    def __init__(self):
        self.requests = 0

    def __call__(self, body):
        self.requests += 1
        status, answer = sound(body)
        answer["data"][0]["score"] += 0.002 if self.requests > 3 else 0.0
        return status, answer


@pytest.mark.parametrize(
    ("known", "settings", "fault"),
    [
        (near_half, {}, SAME_IMAGES),
        (lambda body: sound({**body, "instruction": ""}), {"instruction": "Find captions."}, NO_INSTRUCTION),
        (Together(), {}, OTHERS_BESIDE),
    ],
    ids=["a wrong template", "an instruction that is ignored", "a batch that matters"],
)
async def test_a_reranker_that_fails_its_check_is_not_served(with_reranker, server, known, settings, fault):
    """With the sentence that says why."""
    server.known, server.rerank = known, lambda body: (200, answered(0.75))
    async with with_reranker(**settings) as client:
        assert (await degraded(client)).endswith(fault)
        answer = await client.post("/score", json={"items": [item()], "metrics": ["rerankscore"]})

    assert 503 == answer.status_code
    assert fault in answer.json()["detail"]


async def test_an_instruction_that_changes_a_score_a_little_is_read(with_reranker, server):
    """A model that is sure of the known pair is served: a tenth of a logit is 0.002 of its score."""

    def known(body):
        return 200, answered(
            sigmoid((4.0 if KNOWN in json.dumps(body) else -4.0) + ("instruction" in body) / 10)
        )

    server.known, server.rerank = known, lambda body: (200, answered(0.75))
    async with with_reranker(instruction="Find captions.") as client:
        result = await rerank(client)

    assert {"rerankscore": 0.75} == result["scores"]


def test_a_logit_of_any_size_has_a_probability():
    """Without overflow."""
    assert (0.0, 0.5, 1.0) == (sigmoid(-1e4), sigmoid(0.0), sigmoid(1e4))
    assert math.isclose(sigmoid(-3.0), 1 - sigmoid(3.0))
