"""The check of a served model each time that it comes up: known questions, and what fails is not served."""

import logging
import math

import pytest

from models.core.contract import SAME_ANSWERS
from service.core.errors import NotReady
from service.serving.backends.trust import OTHER_ANSWERS, RENEW_S
from tests.app.serving.test_last_calls import backend
from tests.app.serving.test_remote_reward import classified
from tests.app.serving.test_remote_vlm import vqa
from tests.support.clocks import Clock
from tests.support.fake_openai import plausible, weighed
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def parts(clock):
    return {"clock": clock}


async def refused(check):
    """The reason of a check that fails."""
    with pytest.raises(NotReady) as caught:
        await check()
    return caught.value.detail


def constant(body):
    return 200, weighed(id5=-0.7, id6=-0.7)


async def test_a_server_that_answers_everything_alike_is_not_served(with_vlm, server):
    """An error that says which check failed, no score; not ready, and in no list of rewards."""
    server.known = server.chat = constant
    async with with_vlm() as client:
        answer = await client.post("/score", json=request())
        ready, health = await client.get("/readyz"), (await client.get("/health")).json()
        value = (await client.get("/metrics")).text
        server.known = lambda body: (200, plausible(body))
        await backend(client, "vqa").look()
        mended = (await vqa(client))["scores"]

    assert (503, "not_ready") == (answer.status_code, answer.json()["code"])
    assert SAME_ANSWERS in answer.json()["detail"]
    assert (503, True) == (ready.status_code, SAME_ANSWERS in ready.json()["detail"])
    assert ({}, True) == (health["rewards"], health["degraded"]["vqascore"].endswith(SAME_ANSWERS))
    assert 'scoregate_model_ready{model="vqa"} 0.0' in value
    assert {"vqascore": pytest.approx(math.exp(-0.7))} == mended
    assert 1 == len(server.bodies)


async def test_the_log_has_a_line_when_a_served_model_is_not_trusted_and_when_it_is_again(
    with_vlm, server, caplog
):
    """One for each change, and none for a look that finds the same."""
    caplog.set_level(logging.INFO, "scoregate.remote")
    server.known = constant
    async with with_vlm() as client:
        await backend(client, "vqa").look()
        server.known = lambda body: (200, plausible(body))
        for _ in range(2):
            await backend(client, "vqa").look()

    lines = [
        (each.levelname, each.getMessage()) for each in caplog.records if each.name == "scoregate.remote"
    ]
    assert [("WARNING", f"models.vqa {SAME_ANSWERS}"), ("INFO", "models.vqa is served again")] == lines


async def test_a_reward_model_that_answers_everything_alike_is_not_served(with_reward, server):
    """A head that sees no picture, for example."""
    server.known = server.classify = lambda body: (200, classified(0.5))
    async with with_reward() as client:
        health = (await client.get("/health")).json()

    assert health["degraded"]["reward_model"].endswith(SAME_ANSWERS)


def request():
    return {"items": [item("a red dog")], "metrics": ["vqascore"]}


def otherwise(body):
    """Plausible, but not what the server said before."""
    yes, no = (-0.5, -1.0) if "a red picture" in str(body) else (-4.0, -0.1)
    return 200, weighed(id5=yes, id6=no)


@pytest.mark.parametrize("how", ["sleep", "gone"])
async def test_a_server_that_comes_back_otherwise_is_not_served(with_vlm, server, how):
    """After a sleep, and after it was away: the first call waits for the check, and gets no number."""
    server.models = (200, {"data": [{"id": "m", "owned_by": "vllm"}]})
    server.sleeps = False
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0))
    good = server.models
    async with with_vlm() as client:
        before = await vqa(client)
        if how == "sleep":
            server.sleeps = True
        else:
            server.models = (503, {})
        await backend(client, "vqa").look()
        away = (await client.get("/health")).json()["degraded"]["vqascore"]
        server.sleeps, server.models, server.known = False, good, otherwise
        refused = await client.post("/score", json={"items": [item("a cat")], "metrics": ["vqascore"]})
        await backend(client, "vqa").look()
        told = (await client.get("/health")).json()["degraded"]["vqascore"]

    assert "vqascore" in before["scores"]
    assert away.endswith("is asleep" if how == "sleep" else "returned status 503")
    assert OTHER_ANSWERS in refused.text
    assert told.endswith(OTHER_ANSWERS)
    assert 1 == len(server.bodies)


async def test_a_server_that_knows_nothing_of_sleep_is_asked_about_it_once(with_vlm, server):
    """Most vLLMs have no such route, and their log would have a line for every look."""
    server.models = (200, {"data": [{"id": "m", "owned_by": "vllm"}]})
    async with with_vlm() as client:
        for _ in range(3):
            await backend(client, "vqa").look()

    assert ["/v1/models", "/is_sleeping", *["/v1/models"] * 3] == server.looks


async def test_judge_is_offered_once_the_server_is_there_and_its_labels_are_tokens(with_vlm, server):
    """While it is away nobody can know; digits of two tokens and no letters are no labels."""
    good, server.models = server.models, (503, {})
    two = {label: [40, 41] for label in "12345ABCDE"}
    server.tokens = {**server.tokens, **two}
    async with with_vlm() as client:
        away = (await client.get("/models")).json()["metrics"].keys()
        server.models = good
        await backend(client, "vqa").look()
        there = (await client.get("/models")).json()["metrics"].keys()
        refused = await client.post("/score", json={**request(), "metrics": ["judge"]})

    assert {"judge"} == away - there
    assert "models.vqa cannot serve judge: the answer has 2 tokens" in refused.json()["detail"]


async def test_judge_is_looked_into_once_a_model_that_failed_its_check_passes_it(with_vlm, server):
    """Not before: it answers nothing."""
    server.tokens = {**server.tokens, **{label: [40, 41] for label in "12345ABCDE"}}
    server.known = constant
    async with with_vlm() as client:
        before = (await client.get("/models")).json()["metrics"].keys()
        server.known = lambda body: (200, plausible(body))
        await backend(client, "vqa").look()
        after = (await client.get("/models")).json()["metrics"].keys()

    assert {"judge"} == before - after


async def test_a_server_that_is_only_busy_stays_ready(with_vlm, server, clock):
    """A check that is made in passing, and not answered, says nothing; no call waits for it."""
    refused = []
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0))
    async with with_vlm() as client:
        clock.advance(RENEW_S)
        server.known = lambda body: refused.append(body) or (500, {})
        await backend(client, "vqa").look()
        ready, scores = await client.get("/readyz"), (await vqa(client))["scores"]

    assert refused
    assert 200 == ready.status_code
    assert "vqascore" in scores


async def test_judge_is_offered_with_a_server_that_takes_its_letters(with_vlm, server):
    """One kind of labels is enough."""
    server.tokens = {**server.tokens, **{label: [40, 41] for label in "12345"}}
    async with with_vlm() as client:
        assert "judge" in (await client.get("/models")).json()["metrics"]
