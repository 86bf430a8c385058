"""What a service has, from Python: its health, metrics, models and question sets."""

import json

import httpx2 as httpx
import pytest

from scoregate.errors import InputError
from scoregate.inventory import (
    MetricsSettings,
    ModelsSettings,
    QuestionsSettings,
    health,
    metrics,
    models,
    questions,
)
from scoregate.local import Service
from tests.support.answers import problem

DEMO = {
    "name": "writer",
    "role": "questions",
    "id": "scoregate-demo-questions",
    "revision": "",
    "device": "cpu",
}
SET = {"prompt": "a", "style": "dsg", "id": "sha256:1", "cached": False, "questions": []}
METRICS = {name: {"served": True, "models": ["clip"], "ready": True} for name in ("clipscore", "siglip")}


def answer(request):
    """A service with a demo model that writes questions."""
    if request.url.path == "/models":
        return httpx.Response(200, json={"models": [DEMO], "metrics": METRICS, "absent": {}})
    if request.url.path == "/questions":
        sets = [SET | {"prompt": prompt} for prompt in json.loads(request.content)["prompts"]]
        return httpx.Response(200, json={"sets": sets})
    return httpx.Response(200, json={"ready": True, "reasons": []})


@pytest.fixture
def service(answered):
    """That service, by a client of it."""
    return Service.of(answered(answer))


def test_a_service_that_does_not_list_its_models_may_be_ready(answered):
    """The error of that request is kept beside the readiness, and not among what JSON has."""

    def without_models(request):
        return problem(403, "forbidden") if request.url.path == "/models" else answer(request)

    found = health(Service.of(answered(without_models)))

    assert (True, "forbidden", {"ready": True}) == (found.ready, found.fault.code, found.as_json())


def test_metrics_are_those_that_are_named(service):
    """By default all; a name that is wrong is bad input with the nearest one."""
    assert [*METRICS] == [*metrics(MetricsSettings(), service)]
    assert ["siglip"] == [*metrics(MetricsSettings(names=["siglip"]), service)]
    with pytest.raises(InputError, match="clipscor: there is no such metric; did you mean clipscore"):
        metrics(MetricsSettings(names=["clipscor"]), service)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (ModelsSettings(action="load"), "load needs the name of a model"),
        (ModelsSettings(action="offload", name="vqa", revision="1"), "`revision` belongs to load"),
    ],
)
def test_a_change_of_a_model_that_is_not_complete_loads_nothing(settings, why):
    """The error precedes the models of this process, of which there are none by this name."""
    with pytest.raises(InputError, match=why):
        models(settings, Service(local=["no-such-profile"]))


def test_questions_have_a_warning_about_the_demo_model_that_wrote_them(service):
    """Each prompt has a set, in the order of the prompts."""
    found = questions(QuestionsSettings(prompts=["a", "b"]), service)

    assert found.complete
    assert ["a", "b"] == [each.as_json()["prompt"] for each in found.sets]
    assert ["writer is a demo model"] == [str(each).partition(":")[0] for each in found.warnings]
