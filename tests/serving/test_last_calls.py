"""How the last calls of a served model went, and what /health says of it."""

import pytest

from models.contract import Prepared, UpstreamError
from service.serving.backends.last_calls import AGAIN_S, IN_A_ROW, MOST_S, LastCalls
from service.serving.backends.upstream import ServerFailed, Unreachable
from tests.conftest import item
from tests.serving.test_remote_llm import SET
from tests.support.fake_openai import said

pytestmark = pytest.mark.anyio

CALL, OTHER = Prepared(1, "a call"), Prepared(1, "another")
PROMPT = "a red dog"


@pytest.mark.parametrize(
    "error", [Unreachable("cannot be reached"), ServerFailed("returned status 500", 500)]
)
def test_one_call_that_the_server_does_not_answer_is_enough(error):
    """And one that works makes up for it."""
    calls = LastCalls()
    calls.failed(CALL, error, 0)
    failed = calls.reason
    calls.worked()

    assert (f"failed its last call: {error}", "") == (failed, calls.reason)


@pytest.mark.parametrize("error", [UpstreamError("wrote no text"), ServerFailed("returned status 400", 400)])
def test_bad_answers_may_be_their_calls_fault_until_several_follow_each_other(error):
    """A success between them starts the count again."""
    calls = LastCalls()
    for call in (CALL, CALL, None, CALL, CALL):
        calls.failed(call, error, 0) if call else calls.worked()
    before = calls.reason
    calls.failed(OTHER, error, 0)

    assert 3 == IN_A_ROW
    assert ("", f"failed its last 3 calls: {error}") == (before, calls.reason)


def test_the_call_that_failed_last_is_due_at_once_then_ever_more_rarely():
    """Up to a minute apart; nothing is due while all is well."""
    calls = LastCalls()
    idle = calls.take_due(0)
    calls.failed(CALL, Unreachable("cannot be reached"), 0)
    calls.failed(OTHER, Unreachable("cannot be reached"), 0)
    due = [(now, call.data) for now in range(0, 200, 5) if (call := calls.take_due(now))]
    calls.worked()

    assert (None, None) == (idle, calls.take_due(1000))
    assert (5.0, 60.0) == (AGAIN_S, MOST_S)
    assert [(now, "another") for now in (0, 5, 15, 35, 75, 135, 195)] == due


def backend(client, name):
    """The backend behind a client's service."""
    return client._transport.app.state.service.runtime.handles[name]._backend


def composite():
    return {"sum": {"dsg": {"weight": 1}, "vqascore": {"weight": 1}}}


async def test_a_metric_whose_model_failed_its_last_call_is_degraded_and_no_reward(with_llm, server):
    """With the reason, as are composites that need it; the probe sees nothing.  It recovers by itself."""
    server.chat = lambda body: (500, {})
    async with with_llm(composites=composite()) as client:
        before = (await client.get("/health")).json()
        await client.post("/score", json={"items": [item(PROMPT)], "metrics": ["dsg"]})
        failing = (await client.get("/health")).json()
        told = (await client.get("/models")).json()["metrics"]
        server.chat = lambda body: (200, said(SET))
        await backend(client, "questions").look()
        mended = (await client.get("/health")).json()

    reason = "the question LLM (models.questions): failed its last call: returned status 500"
    assert {"dsg", "sum", "vqascore"} <= before["rewards"].keys()
    assert {} == before["degraded"] == mended["degraded"]
    assert (reason, reason) == (failing["degraded"]["dsg"], failing["degraded"]["sum"])
    assert {"vqascore", "clipscore", "judge"} == failing["rewards"].keys()
    assert {} == failing["not_ready"]
    assert (False, reason) == (told["dsg"]["ready"], told["dsg"]["degraded"])
    assert (True, None) == (told["vqascore"]["ready"], told["vqascore"].get("degraded"))
    assert before["rewards"] == mended["rewards"]


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ((401, {}), "returned status 401"),
        ((200, {"data": [{"id": "other"}]}), "serves no model named m"),
        ((200, {"data": 5}), "returned no list of models"),
        ((200, {"data": [5, None, [], {"id": {}}]}), "serves no model named m"),
        ((200, {"data": None}), "returned no list of models"),
        ((200, {}), "returned no list of models"),
    ],
)
async def test_a_probe_that_fails_makes_its_metrics_degraded_until_one_succeeds(
    with_llm, server, models, told
):
    """Whatever the server answers; nobody has asked for a score."""
    good, server.models = server.models, models
    async with with_llm() as client:
        down = (await client.get("/health")).json()
        await backend(client, "questions").look()
        server.models = good
        await backend(client, "questions").look()
        up = (await client.get("/health")).json()

    assert f"the question LLM (models.questions): {told}" == down["degraded"]["dsg"]
    assert ("dsg" in down["rewards"], "dsg" in up["rewards"]) == (False, True)


async def test_a_metric_that_needs_a_served_model_is_degraded_with_it(with_vlm, server):
    """And the health check of trainers for that metric is 503."""
    server.models = (503, {})
    async with with_vlm(dialects={"enabled": ["flow_factory"]}) as client:
        told = (await client.get("/health")).json()
        of_metric = await client.get("/vqascore/health")

    assert ({}, {}) == (told["rewards"], told["not_ready"])
    assert "the VQA model (models.vqa): returned status 503" == told["degraded"]["vqascore"]
    assert (503, True) == (of_metric.status_code, "returned status 503" in of_metric.json()["detail"])
