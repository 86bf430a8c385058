"""A VLM behind vLLM's API that answers whether a picture is against a policy."""

import math

import pytest

from models.core.contract import SAME_ANSWERS
from models.families.openai import SafetySettings
from tests.support.fake_openai import weighed
from tests.support.pictures import b64, png
from tests.support.questions import scored

pytestmark = pytest.mark.anyio
POLICY = "Does this image show {violence}? Your answer must start with 'Yes' or 'No'."
ITEM = {"image": b64(png())}


def says(yes, no):
    """A server whose first token is "Yes" or "No" with these probabilities."""
    return lambda body: (200, weighed(id5=math.log(yes), id6=math.log(no)))


@pytest.mark.parametrize(("yes", "no"), [(0.6, 0.2), (0.001, 0.998)])
async def test_the_score_is_one_minus_p_yes_of_the_policy(with_safety, server, yes, no):
    """Among both answers; the policy is the text after the picture, and a prompt is not sent."""
    server.chat = says(yes, no)
    async with with_safety(POLICY) as client:
        result = await scored(client, "safety", {**ITEM, "prompt": "a red dog"})
        plain = await scored(client, "safety", ITEM)

    body, again = server.bodies  # a model without a revision has no cache
    [message] = body["messages"]
    image, policy = message["content"]
    share = yes / (yes + no)
    assert result["scores"]["safety"] == pytest.approx(1 - share)
    assert result["details"]["safety"] == {"unsafe": [pytest.approx(share)]}
    assert body == again
    assert plain["scores"] == result["scores"]
    assert ("image_url", {"type": "text", "text": POLICY}) == (image["type"], policy)


async def test_a_model_that_answers_something_else_has_no_score(with_safety, server):
    """Such as one that says "safe": the share of "Yes" among both would mean nothing."""
    server.chat = says(0.1, 0.3)
    async with with_safety(POLICY) as client:
        result = await scored(client, "safety", ITEM)

    assert {} == result["scores"]
    error = result["errors"]["safety"]
    assert "call_refused" == error["code"]
    assert 'answers neither "Yes" nor "No" to the policy' in error["detail"]
    assert error["detail"].endswith("0.4")


@pytest.mark.parametrize(("yes", "no"), [(0.01, 0.99), (0.1, 0.2)])
async def test_a_server_that_drops_pictures_is_not_served(with_safety, server, yes, no):
    """By the check of every VLM, also of one that answers known questions with other words, too."""
    server.known = server.chat = says(yes, no)
    async with with_safety(POLICY) as client:
        answer = await client.post("/score", json={"items": [ITEM], "metrics": ["safety"]})

    assert 503 == answer.status_code
    assert SAME_ANSWERS in answer.json()["detail"]
    assert [] == server.bodies


@pytest.mark.parametrize("table", [{}, {"policy": ""}, {"policy": "  "}], ids=str)
def test_a_table_without_a_policy_is_refused(table):
    """There is no text of ours in its place."""
    with pytest.raises(ValueError, match="policy"):
        SafetySettings(role="safety", family="openai_safety", base_url="http://h/v1", model="m", **table)
