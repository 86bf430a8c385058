"""Named outputs of reward models: metrics of their own from the same call."""

from math import exp

import pytest

from tests.support.fakes import FakeEditReward, FakeHpsv3, FakeHpsv3pp
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio

ITEM = item("a red circle", b64(png()))
NAMES = ("hpsv3", "hpsv3pp")
ROLES = (*NAMES, "editreward", "clip", "vqa", "questions")
SETTINGS = {"metrics": {name: {"model": name} for name in NAMES}}
MODELS = {
    name: {"family": "fake", "role": name} for name in (*NAMES, "editreward", "clip", "vqa", "questions")
}


@pytest.fixture
def model(fakes):
    """The models of both metrics; that of `hpsv3` is returned."""
    fakes |= {"hpsv3": FakeHpsv3(), "hpsv3pp": FakeHpsv3pp(), "editreward": FakeEditReward()}
    return fakes["hpsv3"]


async def test_outputs_are_metrics_from_one_call(serve, model):
    """Together with the whole metric the model is run once; details and documents have all of them."""
    metrics = ["hpsv3", "hpsv3.mu", "hpsv3.sigma"]
    async with serve(models=MODELS, **SETTINGS, cache={"scores": "off"}) as client:
        answer = (
            await client.post("/score", json={"items": [ITEM], "metrics": metrics, "explain": True})
        ).json()
        listed = (await client.get("/models")).json()["metrics"]
        document = (await client.get("/openapi.json")).text

    [result] = answer["results"]
    assert 1 == len(model.calls)
    assert result["scores"]["hpsv3"] == result["scores"]["hpsv3.mu"] != result["scores"]["hpsv3.sigma"]
    assert {"mu", "sigma", "deviation"} == result["details"]["hpsv3.sigma"].keys()
    assert exp(result["scores"]["hpsv3.sigma"]) == result["details"]["hpsv3"]["deviation"]
    assert {*metrics, "hpsv3pp.capability"} <= listed.keys()
    assert all(f'"{name}"' in document for name in metrics)


async def test_an_output_may_be_the_only_metric(serve, model):
    """And a part of a composite; without a model in the settings there is no such metric."""
    composites = {"sure": {"hpsv3.mu": {"weight": 1.0}, "hpsv3.sigma": {"weight": -0.5}}}
    async with serve(models=MODELS, **SETTINGS, composites=composites) as client:
        body = {"items": [ITEM], "metrics": ["hpsv3.sigma", "sure"]}
        scores = (await client.post("/score", json=body)).json()["results"][0]["scores"]
        whole = (await client.post("/score", json={**body, "metrics": ["hpsv3"]})).json()
    async with serve(models=MODELS) as client:
        refused = await client.post("/score", json={**body, "metrics": ["hpsv3.sigma"]})

    assert -1 == scores["hpsv3.sigma"]
    assert whole["results"][0]["scores"]["hpsv3"] + 0.5 == pytest.approx(scores["sure"])
    assert "unknown_metric" == refused.json()["code"]


async def test_the_progress_of_a_training_is_an_option(serve, model):
    """Between 0 and 1; outputs of one request may have options of their own."""
    options = {"hpsv3pp": {"progress": 0.25}, "hpsv3pp.capability": {"progress": 1}}
    body = {
        "items": [ITEM],
        "metrics": ["hpsv3pp", "hpsv3pp.capability"],
        "options": options,
        "explain": True,
    }
    async with serve(models=MODELS, **SETTINGS) as client:
        result = (await client.post("/score", json=body)).json()["results"][0]
        body["options"] = {"hpsv3pp": {"progress": 1.5}}
        refused = await client.post("/score", json=body)

    assert 0.25 == result["details"]["hpsv3pp"]["capability"]  # the fake returns the option
    assert 1 == result["scores"]["hpsv3pp.capability"]
    assert (422, "/options/hpsv3pp/progress") == (refused.status_code, refused.json()["errors"][0]["pointer"])


async def test_an_edit_needs_its_source(serve, model, fakes):
    """Heads have metrics of their own; an item without a source is an error of that item alone."""
    names = ["editreward", "editreward.following", "editreward.quality"]
    edited = item("make it red", b64(png()), source=b64(png("blue")))
    body = {"items": [edited, ITEM], "metrics": names}
    settings = {"metrics": {"editreward": {"model": "editreward"}}}
    async with serve(models=MODELS, **settings) as client:
        first, second = (await client.post("/score", json=body)).json()["results"]

    whole, *heads = (first["scores"][name] for name in names)
    assert whole == pytest.approx(sum(heads) / 2)
    assert len({*heads}) == 2
    assert {"missing_picture"} == {error["code"] for error in second["errors"].values()}
    assert 1 == len(fakes["editreward"].calls)
