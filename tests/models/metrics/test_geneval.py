"""GenEval as a metric on a network."""

import numpy as np
import PIL.Image
import PIL.ImageDraw
import pytest

from models.families.detector.mask2former import Mask2Former
from tests.support.detector_checkpoints import mask2former
from tests.support.pictures import b64, item, saved

pytestmark = pytest.mark.anyio


async def test_a_real_network_looks_at_each_picture_once(serve, fakes, tmp_path):
    """A tiny Mask2Former; two prompts for each of two pictures, and what it found is told with both."""
    labels = ("dog", "cat", "remote")
    fakes["detector"] = Mask2Former(mask2former(tmp_path / "it", labels), dtype="float32", device="cpu")
    looked, score = [], fakes["detector"].score
    fakes["detector"].score = lambda batch: looked.extend(batch) or score(batch)
    pictures = [
        PIL.Image.fromarray(np.random.default_rng(seed).integers(0, 256, (48, 64, 3), np.uint8))
        for seed in (1, 2)
    ]
    prompts = "a photo of a cat", "a photo of a dog and a tv remote"
    items = [item(prompt, b64(saved(each, "PNG"))) for each in pictures for prompt in prompts]
    body = {"items": items, "metrics": ["geneval"], "explain": True}
    async with serve() as client:
        warmed = len(looked)
        results = (await client.post("/score", json=body)).json()["results"]

    shown = [result["details"]["geneval"] for result in results]
    found = [{each["class"] for each in details["boxes"]} for details in shown]
    assert 2 == len(looked) - warmed
    assert shown[0]["boxes"] == shown[1]["boxes"] != shown[2]["boxes"]
    assert all(found)
    assert ["cat" in found[0], {"dog", "tv remote"} <= found[1]] == [each["correct"] for each in shown[:2]]
