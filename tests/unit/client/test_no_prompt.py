"""Items without a prompt: the field is not sent."""

import httpx2 as httpx
import pytest

from scoregate import Item
from tests.support.answers import request_of, scored
from tests.support.pictures import png


@pytest.fixture
def sent():
    """The bodies of all requests."""
    return []


@pytest.fixture
def client(answered, sent):
    def answer(request):
        sent.append(request_of(request))
        if request.url.path == "/rank":
            entries = [{"index": 0, "score": 1.0, "accepted": True}]
            return httpx.Response(200, json={"ranking": entries, "models": {}})
        return scored(request)

    return answered(answer)


@pytest.mark.parametrize("prompt", [None, ""])
def test_a_prompt_that_is_none_or_empty_is_not_sent(client, sent, prompt):
    """In an item, in a pair, and in a ranking."""
    client.score_items(
        [Item(prompt=prompt, image=png()), (png(), prompt), Item(prompt="a square", image=png())]
    )
    client.rank(prompt, [png()])

    assert [False, False, True] == ["prompt" in item for item in sent[0]["items"]]
    assert "prompt" not in sent[1]


def test_a_score_needs_no_prompt(client, sent):
    """`score(image)` alone; the prompt of its result is empty."""
    score = client.score(png())

    assert "" == score.prompt
    assert "prompt" not in sent[0]["items"][0]
