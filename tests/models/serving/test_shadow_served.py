"""A shadow by another revision of a real CLIP: a directory whose files have changed since the start."""

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from service.core.settings.tree import Settings
from service.serving.backends.weights import bytes_of
from service.serving.loading import load_models
from tests.support.app import served, service_of
from tests.support.clip_checkpoints import noise, plain_cosines, save_own
from tests.support.pictures import b64, item, saved

pytestmark = pytest.mark.anyio

IMAGES = [noise(97, 41), noise(40, 123)]
PROMPTS = [f"a photo of {number} cats" for number in range(16)]


@pytest.fixture
def directory(tmp_path):
    return save_own(tmp_path / "clip")


@pytest.fixture
async def client(directory, tmp_path):
    models = {"clip": {"role": "clip", "family": "open_clip", "checkpoint": str(directory)}}
    loaded = load_models(Settings.model_validate({"models": models}))
    cache = {"questions": f"sqlite:///{tmp_path}/q", "scores": "off"}
    async with served(loaded, tmp_path, models=models, cache=cache) as client:
        client._transport.app.state.operators = True
        yield client


async def scores(client):
    """The cosines of all pairs, as a table of images and prompts."""
    items = [item(prompt, b64(saved(image, "PNG"))) for image in IMAGES for prompt in PROMPTS]
    answer = await client.post("/score", json={"items": items, "metrics": ["clipscore"]})
    found = [result["scores"]["clipscore"] for result in answer.json()["results"]]
    return np.array(found).reshape(len(IMAGES), len(PROMPTS))


async def test_the_shadow_has_its_own_weights_until_it_ends(client, directory):
    """Callers get the scores of the first files, and the shadow's mean is that of the new ones."""
    first = plain_cosines(directory, IMAGES, PROMPTS)
    weights = load_file(directory / "open_clip_model.safetensors")
    weights["text_projection"] = -weights["text_projection"].flip(1)
    save_file(weights, directory / "open_clip_model.safetensors")
    second = plain_cosines(directory, IMAGES, PROMPTS)
    service = service_of(client)
    [pool] = service.runtime.pools

    await client.post("/models/clip/shadow", json={"revision": "newer", "share": 1})
    found = await scores(client)
    await service.shadows.of("clip")._tasks.wait()
    _, shadow = pool.residents
    held = bytes_of(shadow.copies)
    answer = (await client.delete("/models/clip/shadow")).json()

    assert answer["shadow"].endswith("@newer")
    figures = answer["metrics"]["clipscore"]["figures"]
    assert np.abs(first - found).max() <= 2e-5
    assert (first.mean(), second.mean()) == pytest.approx(
        (figures["served"]["mean"], figures["shadow"]["mean"]), abs=2e-5
    )
    assert abs(first.mean() - second.mean()) > 1e-3
    assert held == bytes_of(pool.residents[0].copies) > 0 == bytes_of(shadow.copies)
    assert np.abs(first - await scores(client)).max() <= 2e-5
