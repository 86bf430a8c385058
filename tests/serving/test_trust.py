"""The check of a served model each time that it comes up: known questions, and what fails is not served."""

import math

import pytest

from models.contract import UpstreamError
from models.known import TOLERANCE
from models.outcomes import Likelihood
from service.errors import NotReady
from service.serving.backends.trust import AGAIN_S, OTHER, SAME, UNSTEADY, Trust
from service.serving.backends.upstream import ServerFailed, Unreachable
from tests.conftest import item
from tests.serving.test_last_calls import backend
from tests.serving.test_remote_reward import classified
from tests.serving.test_remote_vlm import vqa
from tests.support.fake_openai import plausible, weighed

pytestmark = pytest.mark.anyio

SOUND = {"red": 0.9, "blue": 0.1}


def says(yes):
    """A likelihood of that share of "Yes"."""
    return Likelihood((math.log(yes),), math.log(yes), math.log(1 - yes))


class Model:
    """Answers with what it is given, an exception too, and keeps what it was asked."""

    def __init__(self, **answers):
        self.answers, self.asked, self.now = {**SOUND, **answers}, [], 0.0
        self.trust = Trust("m", ("red", "blue"), self.ask, lambda: self.now)

    async def ask(self, call):
        self.asked.append(call)
        given = self.answers[call]
        given = given.pop(0) if isinstance(given, list) else given
        if isinstance(given, Exception):
            raise given
        return says(given)


async def refused(check):
    """The reason of a check that fails."""
    with pytest.raises(NotReady) as caught:
        await check()
    return caught.value.detail


async def test_a_model_is_checked_once_until_it_is_doubted_or_was_not_for_a_minute():
    """Opposite questions, the first of them twice; calls alone cause no second check."""
    model = Model()
    for _ in range(3):
        await model.trust.check()
    once = [*model.asked]
    await model.trust.renew()
    model.now = AGAIN_S
    await model.trust.check()
    calls = len(model.asked)
    await model.trust.renew()
    model.trust.doubted = True
    await model.trust.check()

    assert ["red", "blue", "red"] == once
    assert (3, 9) == (calls, len(model.asked))


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({"red": 0.5, "blue": 0.5}, SAME),
        ({"red": 1 - 1e-9, "blue": 1 - 1e-9}, SAME),
        ({"red": [0.9, 0.9 - 2 * TOLERANCE]}, UNSTEADY),
    ],
)
async def test_numbers_that_no_sound_model_gives_are_refused_until_they_are_better(answers, told):
    """Each call is told which check failed; the next look finds it mended."""
    model = Model(**answers)
    first = await refused(model.trust.check)
    asked = len(model.asked)
    again = await refused(model.trust.check)
    model.answers = SOUND
    await model.trust.renew()

    assert f"models.m is not served: it {told}" == first == again
    assert (3, "") == (asked, model.trust.fault)


async def test_near_numbers_are_plausible():
    """A random checkpoint says nearly the same of everything, and rounding moves every number."""
    model = Model(red=[0.5, 0.5 + TOLERANCE / 2, 0.5 - TOLERANCE / 3, 0.5], blue=0.5 + 1e-9)
    await model.trust.check()
    model.trust.doubted = True
    await model.trust.check()


async def test_other_numbers_than_before_are_refused():
    """Though they are plausible by themselves: it may be another model, or a cache that a sleep spoilt."""
    model = Model()
    await model.trust.check()
    model.answers = {"red": 0.7, "blue": 0.1}
    model.trust.doubted = True
    told = await refused(model.trust.check)
    model.answers = SOUND
    await model.trust.renew()

    assert told.endswith(OTHER)
    assert "" == model.trust.fault


async def test_a_server_that_does_not_answer_is_asked_again_by_the_next_call():
    """The check has passed nothing."""
    model = Model(red=[Unreachable("cannot be reached"), 0.9, 0.9])
    with pytest.raises(ServerFailed):
        await model.trust.check()
    await model.trust.check()

    assert ["red", "red", "blue", "red"] == model.asked


async def test_a_server_that_tells_too_little_for_the_check_is_asked_all_the_same():
    """A label beyond its twenty likeliest tokens is the error of each call that needs it."""
    model = Model(red=UpstreamError("returned no log-probability for 'No'"))
    await model.trust.check()

    assert "" == model.trust.fault


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
    assert SAME in answer.json()["detail"]
    assert (503, True) == (ready.status_code, SAME in ready.json()["detail"])
    assert ({}, True) == (health["rewards"], health["degraded"]["vqascore"].endswith(SAME))
    assert 'scoregate_model_ready{model="vqa"} 0.0' in value
    assert {"vqascore": pytest.approx(math.exp(-0.7))} == mended
    assert 1 == len(server.bodies)


async def test_a_reward_model_that_answers_everything_alike_is_not_served(with_reward, server):
    """A head that sees no picture, for example."""
    server.known = server.classify = lambda body: (200, classified(0.5))
    async with with_reward() as client:
        health = (await client.get("/health")).json()

    assert health["degraded"]["reward_model"].endswith(SAME)


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
    assert OTHER in refused.text
    assert told.endswith(OTHER)
    assert 1 == len(server.bodies)


async def test_a_server_that_knows_nothing_of_sleep_is_asked_about_it_once(with_vlm, server):
    """Most vLLMs have no such route, and their log would have a line for every look."""
    looks = []
    server.models = (200, {"data": [{"id": "m", "owned_by": "vllm"}]})
    async with with_vlm() as client:
        upstream = backend(client, "vqa")._upstream
        once = upstream._once

        async def noted(method, path, *rest):
            looks.append(path)
            return await once(method, path, *rest)

        upstream._once = noted
        for _ in range(3):
            await backend(client, "vqa").look()

    assert ["models"] * 3 == looks


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


async def test_a_server_that_is_only_busy_stays_ready(with_vlm, server):
    """A check that is made in passing, and not answered, says nothing; no call waits for it."""
    server.chat = lambda body: (200, weighed(id5=-0.5, id6=-2.0))
    async with with_vlm() as client:
        served = backend(client, "vqa")
        served._trust._again = 0.0
        server.known = lambda body: (500, {})
        await served.look()
        ready, scores = await client.get("/readyz"), (await vqa(client))["scores"]

    assert 200 == ready.status_code
    assert "vqascore" in scores


async def test_judge_is_offered_with_a_server_that_takes_its_letters(with_vlm, server):
    """One kind of labels is enough."""
    server.tokens = {**server.tokens, **{label: [40, 41] for label in "12345"}}
    async with with_vlm() as client:
        assert "judge" in (await client.get("/models")).json()["metrics"]
