"""The servers under test: the service around fakes, and the baselines beside it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from loadtest.baselines.app import app
from loadtest.baselines.timer import Timer
from loadtest.baselines.unbatched import bare, one_by_one
from loadtest.servers import PROFILE
from loadtest.workloads.named import plan
from loadtest.workloads.spec import Spec
from service.bootstrap import Service
from service.http.app import create_app
from service.serving.loading import load_models
from service.settings.load import load_settings

ROOT = Path(__file__).parents[2]


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


@pytest.mark.parametrize("top", ["service", "models"])
def test_nothing_of_the_service_imports_the_load_test(top):
    """What measures the service is no part of it."""
    for path in (ROOT / top).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "loadtest"], path


@pytest.mark.integration
def test_the_service_is_as_fast_as_a_regression_would_not_be():
    """`make bench-demo`: its thresholds are far from the targets, for machines with other work."""
    command = [sys.executable, "-m", "loadtest", "--set", "bench"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)

    assert 0 == done.returncode, done.stdout[-2000:] + done.stderr[-2000:]
