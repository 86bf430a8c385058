"""An embedder and a reranker whose server refuses, or never answers."""

import pytest

from models.families.openai.clip import OpenAiClip
from models.families.openai.rerank import OpenAiReranker
from tests.app.serving import test_remote_clip, test_remote_reranker
from tests.app.serving.conftest import remote
from tests.support.pictures import item
from tests.support.questions import scored

pytestmark = pytest.mark.anyio

KINDS = {
    "clip": (OpenAiClip, "openai_clip", "clipscore", "embed", test_remote_clip.sound),
    "reranker": (OpenAiReranker, "openai_rerank", "rerankscore", "rerank", test_remote_reranker.sound),
}


@pytest.fixture(params=KINDS)
def failing(serve, fakes, server, request):
    """A function: the error of one picture where calls, but for those of the check, get an answer."""
    make, family, metric, route, sound = KINDS[request.param]

    async def error(answer, **settings):
        server.known = sound
        setattr(server, route, lambda body: answer)
        fakes.clear()
        fakes[request.param] = make("m", extra_body={})
        async with serve(models={request.param: {**remote(family, server), **settings}}) as client:
            result = await scored(client, metric, item("a red dog"))
        assert {} == result["scores"]
        return result["errors"][metric]

    return error


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((400, {"error": {"message": "prompt is too long"}}), "status 400: prompt is too long"),
        ((401, {}), "returned status 401"),
        ((500, {}), "returned status 500"),
        ((503, {}), "returned status 503"),
        ((200, "<html>"), "not JSON"),
    ],
    ids=["too long", "no key", "broken", "busy", "HTML"],
)
async def test_a_refusing_server_is_an_error_with_its_status(failing, answer, told):
    """Never a number."""
    error = await failing(answer)

    assert "upstream_failed" == error["code"]
    assert told in error["detail"]


async def test_a_hung_server_is_given_up_at_its_timeout(failing, server):
    """The error names the time it had."""

    def silence():
        server.gone.wait(10)
        yield b""

    error = await failing((200, silence()), timeout_s=0.2)

    assert "upstream_failed" == error["code"]
    assert "within 0.2 s" in error["detail"]
