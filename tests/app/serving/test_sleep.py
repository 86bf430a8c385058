"""A model behind a vLLM that goes to sleep and wakes up by the operator's requests."""

import pytest

from service.serving.backends.trust import OTHER_ANSWERS
from tests.app.serving.test_remote_vlm import PROMPT, vqa
from tests.app.serving.test_trust import otherwise
from tests.support.app import service_of
from tests.support.fake_openai import plausible, weighed
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(with_vlm, server):
    """A client with the right to change models, in front of a vLLM that can sleep."""
    server.models = (200, {"data": [{"id": "m", "owned_by": "vllm"}]})
    server.sleeps = False
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0))
    async with with_vlm() as client:
        client._transport.app.state.operators = True
        yield client


async def change(client, action, status=200):
    answer = await client.post(f"/models/vqa/{action}", json={})
    assert status == answer.status_code, answer.text
    return answer.json()


async def refusal(client):
    """The code and the detail of a request that is refused."""
    answer = await client.post("/score", json={"items": [item(PROMPT)], "metrics": ["vqascore"]})
    return answer.json()["code"], answer.json()["detail"]


async def test_a_model_sleeps_and_wakes_up_with_the_same_scores(client, server):
    """Its known calls are sent again before it serves.  The server's memory is unknown here."""
    before, checks = await vqa(client), len(server.checks)
    asleep = await change(client, "offload")
    assert server.sleeps
    away = await refusal(client)
    awake = await change(client, "load")

    assert ("offloaded", None, None) == tuple(
        asleep[key] for key in ("state", "device_bytes_before", "device_bytes_after")
    )
    assert ("not_ready", True) == (away[0], "models.vqa has been taken away (offloaded)" in away[1])
    assert ("loaded", False) == (awake["state"], server.sleeps)
    assert len(server.checks) > checks
    assert before["scores"] == (await vqa(client))["scores"]


async def test_a_model_that_wakes_up_with_other_numbers_does_not_serve(client, server):
    """It sleeps again, and can be loaded later."""
    await change(client, "offload")
    server.known = otherwise

    assert OTHER_ANSWERS in (await change(client, "load", 500))["detail"]
    assert server.sleeps
    assert "not_ready" == (await refusal(client))[0]
    server.known = lambda body: (200, plausible(body))
    assert "loaded" == (await change(client, "load"))["state"]


async def test_a_server_without_sleep_mode_is_told_by_the_options_that_it_needs(client, server):
    """422, and the model serves on."""
    server.sleeps = None

    detail = (await change(client, "offload", 422))["detail"]
    assert "has no sleep?level=1: start vLLM with --enable-sleep-mode" in detail
    assert (await vqa(client))["scores"]


async def test_a_server_that_fails_to_sleep_is_an_error_of_the_server(client, server):
    """502, and the model serves on."""
    server.operated, server.sleeps = 500, False

    assert "with 500" in (await change(client, "offload", 502))["detail"]
    server.sleeps = False
    assert (await vqa(client))["scores"]


async def test_a_served_model_is_not_unloaded(client, server):
    """Its weights are not this process's; it serves on, and is not asked to sleep."""
    assert "cannot be taken away" in (await change(client, "unload", 422))["detail"]
    assert not server.sleeps
    assert (await vqa(client))["scores"]


async def test_a_model_is_ready_as_soon_as_it_is_loaded(client, server):
    """Though the last look at its server found it asleep."""
    await change(client, "offload")
    backend = service_of(client).runtime.handles["vqa"].backend
    await backend.look()
    await change(client, "load")

    assert "" == backend.missing
