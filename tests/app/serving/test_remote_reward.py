"""A reward model behind vLLM's pooling API."""

import pytest

from service.metrics.common.registry import metrics
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

PROMPT = "a red dog {}"


def classified(*outputs):
    """vLLM's answer of a head with those outputs."""
    return {"data": [{"index": 0, "label": None, "probs": [*outputs], "num_classes": len(outputs)}]}


async def rewarded(client):
    body = {"items": [item(PROMPT)], "metrics": ["reward_model"], "explain": True}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"][0]


@pytest.mark.parametrize(("output", "score"), [(0, 7.25), (1, -31)])
async def test_the_score_is_the_output_that_the_settings_name(with_reward, server, output, score):
    """As the head gives it: larger than 1, below 0, a whole number."""
    server.classify = lambda body: (200, classified(7.25, -31))
    async with with_reward(output) as client:
        result = await rewarded(client)

    assert {"reward_model": score} == result["scores"]
    assert {"outputs": [7.25, -31.0]} == result["details"]["reward_model"]


async def test_the_head_is_asked_for_its_own_numbers(with_reward, server):
    """The image stands before the text, in the model's own words, and no sigmoid is applied."""
    server.classify = lambda body: (200, classified(0.5))
    async with with_reward() as client:
        await rewarded(client)

    [body] = server.bodies
    [message] = body.pop("messages")
    image, text = message["content"]
    assert {"model": "m", "use_activation": False, "add_generation_prompt": True} == body
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert {"type": "text", "text": f"Rate: {PROMPT}."} == text


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (classified(), "returned no outputs"),
        (classified(0.5, None), "returned null where"),
        (classified("0.5", True), "returned a boolean and a text where"),
        (classified([0.5]), "returned a list where"),
        ({"data": [*classified(0.5)["data"] * 2]}, "the outputs of 2 chats"),
        ({"data": []}, "the outputs of 0 chats"),
        ({"data": [{"index": 0, "object": "pooling", "data": [[0.5], [0.25]]}]}, "returned no outputs"),
        ({"object": "error"}, "returned no outputs"),
        ('{"data": [{"probs": [1e999]}]}', "not JSON"),
        ('{"data": [{"probs": [NaN]}]}', "not JSON"),
    ],
)
async def test_anything_but_finite_numbers_is_an_error_and_never_a_score(with_reward, server, answer, told):
    """Which says what came instead."""
    server.classify = lambda body: (200, answer)
    async with with_reward() as client:
        result = await rewarded(client)

    assert {} == result["scores"]
    assert told in result["errors"]["reward_model"]["detail"]


async def test_an_output_that_the_head_does_not_have_is_an_error(with_reward, server):
    """The settings name the second, and the head has one."""
    server.classify = lambda body: (200, classified(0.5))
    async with with_reward(output=1) as client:
        result = await rewarded(client)

    assert "upstream_failed" == result["errors"]["reward_model"]["code"]
    assert "returned 1 outputs, so there is no output 1" in result["errors"]["reward_model"]["detail"]


async def test_a_server_without_a_classifier_is_an_error(with_reward, server):
    """A chat model's vLLM has no such route."""
    server.classify = lambda body: (404, {"detail": "Not Found"})
    async with with_reward() as client:
        result = await rewarded(client)

    assert "upstream_failed" == result["errors"]["reward_model"]["code"]
    assert "404" in result["errors"]["reward_model"]["detail"]


async def test_a_reward_has_no_bounds(with_reward, server):
    """`/models` says so, and that the metric is its model."""
    async with with_reward() as client:
        listed = (await client.get("/models")).json()

    assert [None, None] == listed["metrics"]["reward_model"]["range"]
    assert metrics()["reward_model"].own_model
