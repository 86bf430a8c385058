"""How the last calls of a served model went, and what /health says of it."""

import pytest

from tests.app.serving.test_remote_llm import SET
from tests.support.app import service_of
from tests.support.fake_openai import said
from tests.support.pictures import item

pytestmark = pytest.mark.anyio
PROMPT = "a red dog"


def backend(client, name):
    """The backend behind a client's service."""
    return service_of(client).runtime.handles[name].backend


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

    reason = "the questions model (models.questions): failed its last call: returned status 500"
    assert {"dsg", "sum", "vqascore"} <= before["rewards"].keys()
    assert {} == before["degraded"] == mended["degraded"]
    assert (reason, reason) == (failing["degraded"]["dsg"], failing["degraded"]["sum"])
    of_clip = {"clipscore", "refclipscore", "clip_i"}
    assert {"vqascore", "judge", "checklist", *of_clip} == failing["rewards"].keys()
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

    assert f"the questions model (models.questions): {told}" == down["degraded"]["dsg"]
    assert ("dsg" in down["rewards"], "dsg" in up["rewards"]) == (False, True)


async def test_a_metric_that_needs_a_served_model_is_degraded_with_it(with_vlm, server):
    """And the health check of trainers for that metric is 503."""
    server.models = (503, {})
    async with with_vlm(dialects={"enabled": ["flow_factory"]}) as client:
        told = (await client.get("/health")).json()
        of_metric = await client.get("/vqascore/health")

    assert ({}, {}) == (told["rewards"], told["not_ready"])
    assert "the vqa model (models.vqa): returned status 503" == told["degraded"]["vqascore"]
    assert (503, True) == (of_metric.status_code, "returned status 503" in of_metric.json()["detail"])
