"""CLIPs through `POST /score`: any checkpoint in the demo's place, and the metrics that bring their own."""

from contextlib import asynccontextmanager

import httpx
import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from service.core.settings import SettingsError
from service.core.settings.tree import Settings
from service.metrics.common.registry import assign, metrics
from service.serving.loading import load_models
from service.web.app import create_app
from service.wiring.bootstrap import Service
from service.wiring.load import load_settings
from tests.support.clip_checkpoints import (
    noise,
    plain_cosines,
    plain_embeddings,
    published_cosines,
    save_own,
    save_published,
)
from tests.support.pictures import b64, item, saved

pytestmark = pytest.mark.anyio

IMAGES = [noise(97, 41), noise(40, 123)]
PROMPTS = ["a red circle", "a photo of a cat " * 40]
METRICS = ["clipscore", "pickscore", "hpsv2"]


@pytest.fixture
def checkpoints(tmp_path):
    """A general CLIP and two fine-tuned ones, each with weights of its own."""
    clip, hps = save_own(tmp_path / "clip"), save_own(tmp_path / "hps")
    weights = load_file(hps / "open_clip_model.safetensors")
    weights["text_projection"] = -weights["text_projection"].flip(1)
    save_file(weights, hps / "open_clip_model.safetensors")
    save_published(tmp_path / "pick")
    return {"clip": clip, "pickscore": tmp_path / "pick", "hpsv2": hps}


@asynccontextmanager
async def served(settings, tmp_path):
    """A client of the real app around real models."""
    tree = settings.model_dump() | {"cache": {"questions": f"sqlite:///{tmp_path}/q"}}
    settings = Settings.model_validate(tree)
    service = Service(settings, load_models(settings))
    async with service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client


def settings(checkpoints, *named, **more):
    """Each checkpoint as a model of its own; those *named* serve the metric of the same name."""
    models = {
        name: {"role": "clip", "family": "open_clip", "checkpoint": str(path)}
        for name, path in checkpoints.items()
    }
    tables = {name: {"model": name} for name in named}
    return Settings.model_validate({"models": models, "metrics": tables} | more)


def pairs():
    return [item(prompt, b64(saved(image, "PNG"))) for image in IMAGES for prompt in PROMPTS]


async def scores(client, metric, **options):
    """The scores of all pairs, as a table of images and prompts, and the whole answer."""
    body = {"items": pairs(), "metrics": [metric], "options": {metric: options}, "explain": True}
    answer = (await client.post("/score", json=body)).json()
    found = [result["scores"][metric] for result in answer["results"]]
    return np.array(found).reshape(len(IMAGES), len(PROMPTS)), answer


async def test_a_directory_in_model_takes_the_place_of_the_demos_checkpoint(checkpoints, tmp_path):
    """SCOREGATE_MODELS__CLIP__MODEL goes before the profile's `checkpoint`; cosines are open_clip's."""
    demo = load_settings(None, {"SCOREGATE_MODELS__CLIP__MODEL": str(checkpoints["clip"])})
    only = demo.model_copy(update={"models": {"clip": demo.models["clip"]}, "metrics": {}, "policies": {}})
    async with served(only, tmp_path) as client:
        found, answer = await scores(client, "clipscore")
        [model] = (await client.get("/models")).json()["models"]

    assert demo.models["clip"].checkpoint == "demo:clip"
    assert np.abs(plain_cosines(checkpoints["clip"], IMAGES, PROMPTS) - found).max() <= 2e-5
    assert "clip" == model["id"]
    assert ["item 1", "item 3"] == [warning.partition(",")[0] for warning in answer["warnings"]]


async def test_pickscore_is_the_cosine_of_its_own_weights(checkpoints, tmp_path):
    """The general CLIP beside it keeps to clipscore."""
    reference = save_published(checkpoints["pickscore"])
    async with served(settings(checkpoints, "pickscore"), tmp_path) as client:
        found, answer = await scores(client, "pickscore")
        general, _ = await scores(client, "clipscore")

    assert np.abs(published_cosines(reference, IMAGES, PROMPTS) - found).max() <= 2e-5
    assert np.abs(plain_cosines(checkpoints["clip"], IMAGES, PROMPTS) - general).max() <= 2e-5
    assert {"pickscore"} == answer["models"].keys()
    assert answer["warnings"][0].startswith("item 1, pickscore: the prompt was cut at CLIP's context length")


async def test_the_logit_is_the_cosine_times_the_checkpoints_own_scale(checkpoints, tmp_path):
    """As in PickScore's own code, before the softmax over candidates."""
    reference = save_published(checkpoints["pickscore"])
    factor = float(reference.logit_scale.detach().exp())
    async with served(settings(checkpoints, "pickscore"), tmp_path) as client:
        found, answer = await scores(client, "pickscore", scale="logit")

    assert factor * published_cosines(reference, IMAGES, PROMPTS) == pytest.approx(found, abs=3e-4)
    assert factor == pytest.approx(answer["results"][0]["details"]["pickscore"]["logit_scale"])
    assert factor > 10


async def test_hpsv2_is_the_cosine_of_its_own_weights(checkpoints, tmp_path):
    """Here with the longer side resized, as its authors' package does."""
    chosen = settings(checkpoints, "hpsv2")
    hps = chosen.models["hpsv2"].model_copy(update={"resize_mode": "longest"})
    chosen = chosen.model_copy(update={"models": {**chosen.models, "hpsv2": hps}})
    expected = plain_cosines(checkpoints["hpsv2"], IMAGES, PROMPTS, image_resize_mode="longest")
    async with served(chosen, tmp_path) as client:
        found, _ = await scores(client, "hpsv2")

    assert np.abs(expected - found).max() <= 2e-5


async def test_clip_i_is_the_cosine_of_the_embeddings_of_two_pictures(checkpoints, tmp_path):
    """As open_clip computes them, whatever the prompt."""
    embedded, _ = plain_embeddings(checkpoints["clip"], IMAGES, PROMPTS)
    pictures = [b64(saved(image, "PNG")) for image in IMAGES]
    pair = item("a red circle", pictures[0], references=pictures)
    async with served(settings(checkpoints), tmp_path) as client:
        body = {"items": [pair], "metrics": ["clip_i"], "explain": True}
        [result] = (await client.post("/score", json=body)).json()["results"]

    expected = embedded[0] @ embedded.T
    assert expected == pytest.approx(result["details"]["clip_i"]["cosines"], abs=2e-5)
    assert expected.mean() == pytest.approx(result["scores"]["clip_i"], abs=2e-5)
    assert expected[1] < 0.99


async def test_refclipscore_is_that_of_open_clips_embeddings(checkpoints, tmp_path):
    """With the paper's prefix before each text."""
    texts = ["a red circle", "a blue square", "a dog"]
    prefixed = [f"A photo depicts {text}" for text in texts]
    [[seen], read] = plain_embeddings(checkpoints["clip"], IMAGES[:1], prefixed)
    pair = item(texts[0], b64(saved(IMAGES[0], "PNG")))
    options = {"refclipscore": {"reference_texts": texts[1:]}}
    async with served(settings(checkpoints), tmp_path) as client:
        body = {"items": [pair], "metrics": ["refclipscore"], "options": options}
        [result] = (await client.post("/score", json=body)).json()["results"]

    a, b = 2.5 * max(seen @ read[0], 0), max(0, *(read[1:] @ read[0]))
    expected = 2 * a * b / (a + b) if a + b else 0
    assert expected == pytest.approx(result["scores"]["refclipscore"], abs=5e-5)


async def test_models_that_serve_different_metrics_share_no_embedding(checkpoints, tmp_path):
    """Not even where the operator gave them one name."""
    tree = settings(checkpoints, "pickscore", "hpsv2").model_dump()
    for model in tree["models"].values():
        model |= {"id": "clip", "revision": "1"}
    async with served(Settings.model_validate(tree), tmp_path) as client:
        tables = [(await scores(client, metric))[0] for metric in METRICS]

    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.abs(tables[one] - tables[other]).max() > 1e-3


@pytest.mark.parametrize("metric", ["pickscore", "hpsv2"])
async def test_no_other_clip_stands_in_for_a_metrics_own(serve, metric):
    """Without its setting the metric is not served, and the answer names the setting."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [item()], "metrics": ["clipscore", metric]})
        offered = (await client.get("/health")).json()["rewards"]

    [fault] = answer.json()["errors"]
    assert (422, "unknown_metric") == (answer.status_code, answer.json()["code"])
    assert ("/metrics/1", "unknown_metric") == (fault["pointer"], fault["code"])
    assert f"metrics.{metric}.model" in fault["detail"]
    assert "this server has: vqascore, checklist, clip_i, clipscore, dsg" in fault["detail"]
    assert metric not in offered


def test_a_metrics_own_model_stands_in_for_no_other(checkpoints):
    """Whatever the order of the tables; a model called `clip` is there for all."""
    own = {name: checkpoints[name] for name in ("pickscore", "clip")}
    chosen = settings(own, "pickscore")
    alone = settings({"pickscore": checkpoints["pickscore"]}, "pickscore")
    shared = settings(checkpoints, metrics={"pickscore": {"model": "clip"}})

    def assigned(settings):
        names = assign(metrics(), settings)
        return [names.get((metric, "clip")) for metric in METRICS[1::-1]]

    assert ["pickscore", "clip"] == assigned(chosen)
    assert ["pickscore", None] == assigned(alone)
    assert ["clip", "clip"] == assigned(shared)


def test_a_metric_takes_no_model_of_another_role():
    """A VQA model has no cosine."""
    environ = {"SCOREGATE_METRICS__PICKSCORE__MODEL": "vqa"}
    with pytest.raises(SettingsError, match=r"metrics\.pickscore\.model"):
        load_settings(None, environ)
