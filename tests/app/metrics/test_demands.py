"""What metrics ask of the models that they need, told before they are asked."""

import pytest

from service.core.lanes import LANES
from service.metrics.common.registry import own
from service.serving.admission import Demand
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

PROMPT = "a dog and a cat"


def demand(name, **options):
    metric = own()[name]
    return metric.demand(PROMPT, metric.options(**options))


async def test_a_composite_asks_what_its_parts_ask(serve, fakes, monkeypatch):
    """Of each model all that any of them does, once for each frame of each item."""
    from service.serving.handle import Handle

    asked = {}
    real = Handle.admit
    monkeypatch.setattr(
        Handle,
        "admit",
        lambda self, context, demand: asked.update({self.name: demand}) or real(self, context, demand),
    )
    reward = {"vqascore": {"weight": 0.5}, "clipscore": {"weight": 0.5}, "dsg": {"weight": 1.0}}
    body = {"items": [item("a dog", [item()["image"]] * 3)] * 2, "metrics": ["reward"], "priority": LANES[1]}
    async with serve(composites={"reward": reward}) as client:
        answer = await client.post("/score", json=body)

    assert 200 == answer.status_code
    frames, words = 6, len("a dog")
    template = len("{} Please answer yes or no.")
    assert Demand(2, words) * frames == asked["clip"]
    assert (Demand(1, words + len("Yes")) + Demand(8, 8 * template)) * frames == asked["vqa"]
