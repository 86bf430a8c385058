"""An embedding from an OpenAI-compatible server."""

import numpy as np
import pytest

from models.core.calls import TextCall
from models.core.contract import UpstreamError
from models.families.openai.embedding import OpenAiEmbedding

pytestmark = pytest.mark.anyio


async def embedded(answer):
    """The result of a server that answers so, with the request's route and body."""
    model, sent = OpenAiEmbedding("m", extra_body={"dimensions": 2}), []

    async def post(route, body):
        sent.extend((route, body))
        return answer

    return await model.answer(model.prepare(TextCall("a dog")), post), *sent


async def test_the_servers_vector_is_brought_to_length_1():
    """Numbers of any size; the body names one text."""
    found, route, body = await embedded({"data": [{"embedding": [3, 4.0]}]})

    assert np.allclose([0.6, 0.8], found.vector)
    assert ("embeddings", ["a dog"], 2) == (route, body["input"], body["dimensions"])


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": [{"embedding": []}]},
        {"data": [{"embedding": [0, 0]}]},
        {"data": [{"embedding": [1, None]}]},
        {"data": [{"embedding": [True, 1.0]}]},
        {"data": [{"embedding": "AAAA"}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]},
        {"data": [{"embedding": [float("inf"), 1]}]},
    ],
)
async def test_anything_else_is_an_error(answer):
    """Never a vector."""
    with pytest.raises(UpstreamError, match="embedding"):
        await embedded(answer)
