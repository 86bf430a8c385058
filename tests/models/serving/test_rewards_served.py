"""`imagereward` and `aesthetic` through `POST /score`, with small checkpoints in the published layouts."""

import httpx
import numpy as np
import pytest
import torch

from service.core.settings.tree import Settings
from service.serving.loading import load_models
from service.web.app import create_app
from service.wiring.bootstrap import Service
from tests.support.clip_checkpoints import save_own
from tests.support.imagereward_checkpoints import GOLDEN, golden, imagereward
from tests.support.pictures import b64, item

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(tmp_path):
    """A client of the real app around both models."""
    head = tmp_path / "sa_0_4_vit_l_14_linear.pth"
    torch.save({"weight": torch.linspace(-9, 9, 24)[None], "bias": torch.tensor([5.0])}, head)
    models = {
        "imagereward": {"family": "imagereward", "checkpoint": str(imagereward(tmp_path / "ir"))},
        "beauty": {
            "role": "aesthetic",
            "family": "aesthetic",
            "checkpoint": str(save_own(tmp_path / "clip")),
            "head": str(head),
        },
    }
    metrics = {"imagereward": {"model": "imagereward"}, "aesthetic": {"model": "beauty"}}
    cache = {"questions": f"sqlite:///{tmp_path}/q"}
    settings = Settings.model_validate({"models": models, "metrics": metrics, "cache": cache})
    service = Service(settings, load_models(settings))
    async with service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client


async def scored(client, items, *metrics):
    body = {"items": items, "metrics": metrics, "explain": True, "timeout_ms": 600_000}
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def test_imagereward_is_the_number_of_the_authors_package(client):
    """Transparent and palette pictures are made RGB first, as for every metric; a cut prompt is told."""
    said = golden()
    rows = [row for row in said["scores"] if row["image"] in ("alpha.png", "palette.png", "portrait.png")]
    items = [
        item(said["prompts"][row["prompt"]]["text"], b64((GOLDEN / "images" / row["image"]).read_bytes()))
        for row in rows
    ]
    answer = await scored(client, items, "imagereward")
    found = [result["scores"]["imagereward"] for result in answer["results"]]
    cut = [place for place, row in enumerate(rows) if said["prompts"][row["prompt"]]["truncated"]]

    assert [row["score"] for row in rows] == pytest.approx(found, rel=0, abs=1e-5)
    assert {"reward": found[0]} == answer["results"][0]["details"]["imagereward"]
    assert {f"item {place}, imagereward: the prompt was cut at ImageReward's 35 tokens" for place in cut} == {
        warning for warning in answer["warnings"] if "was cut" in warning
    }


async def test_aesthetic_is_a_property_of_the_picture(client):
    """Whatever the prompt; items with the same picture share one call."""
    pictures = [b64((GOLDEN / "images" / name).read_bytes()) for name in ("square.png", "wide.png")]
    items = [item(prompt, picture) for picture in pictures for prompt in ("a red circle", "a dog " * 90)]
    answer = await scored(client, items, "aesthetic")
    found = np.array([result["scores"]["aesthetic"] for result in answer["results"]]).reshape(2, 2)

    assert found[0, 0] == found[0, 1] != found[1, 0] == found[1, 1]
    assert {"rating": found[0, 0]} == answer["results"][0]["details"]["aesthetic"]
    assert "warnings" not in answer


async def test_both_are_listed_with_their_models(client):
    """The CLIP and the head of the predictor are both in its name."""
    told = (await client.get("/models")).json()
    models = {model["role"]: model for model in told["models"]}

    assert "imagereward" == models["imagereward"]["family"]
    assert "clip+sa_0_4_vit_l_14_linear" == models["aesthetic"]["id"]


@pytest.mark.parametrize("metric", ["imagereward", "aesthetic"])
async def test_each_needs_a_model_of_its_own(serve, metric):
    """Without its setting the metric is not served, and the answer names the setting."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [item()], "metrics": [metric]})

    assert 400 <= answer.status_code < 500
    assert f"metrics.{metric}.model" in answer.text
