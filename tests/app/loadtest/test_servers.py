"""The servers under test: the service around fakes, and the baselines beside it."""

import json

import httpx
import pytest

from loadtest.baselines import Timer, app, bare, one_by_one
from loadtest.servers import PROFILE
from loadtest.workloads import Spec, plan
from service.serving.loading import load_models
from service.web.app import create_app
from service.wiring.bootstrap import Service
from service.wiring.load import load_settings


@pytest.mark.anyio
async def test_the_service_serves_the_fakes_and_says_what_they_are(folder, tmp_path):
    """The real app answers a workload's request for every metric."""
    settings = load_settings(PROFILE, {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/q"})
    service = Service(settings, load_models(settings))
    [arrival] = plan(Spec("rl-large", scale=0.001), folder).arrivals[:1]
    body = json.loads(arrival.body) | {"metrics": ["vqascore", "clipscore", "dsg"]}
    async with service, over(create_app(service)) as client:
        answer = (await client.post("/score", json=body)).json()
        told = (await client.get("/models")).json()

    assert not answer["partial"]
    assert {"fake"} == {model["family"] for model in told["models"]}


@pytest.mark.anyio
async def test_the_timer_closes_a_full_batch_and_the_others_go_one_by_one(folder):
    """Four pictures with room for two in a batch; alone they are held four times."""
    held: list[int] = []
    body = plan(Spec("rl-group", scale=0.01), folder).arrivals[0].body
    four = json.loads(body) | {"items": json.loads(body)["items"][:4]}
    for score in (Timer(held.append, 2).score, one_by_one(held.append), bare):
        async with over(app(score)) as client:
            answer = (await client.post("/score", json=four)).json()
        assert 4 == len(answer["results"])

    assert [2, 2, 1, 1, 1, 1] == held


def over(app):
    """A client without a socket."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")
