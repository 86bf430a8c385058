"""What metrics ask of the models that they need, told before they are asked."""

import pytest

from service.core.lanes import INTERACTIVE
from service.images.loader import ImageRef
from service.metrics.common.registry import own
from service.scoring.plan import Plan, UnopenedItem
from service.serving.admission import Demand
from tests.support.app import service_of
from tests.support.pictures import png

pytestmark = pytest.mark.anyio

PROMPT = "a dog and a cat"


def demand(name, **options):
    metric = own()[name]
    return metric.demand(PROMPT, metric.options(**options))


async def test_a_composite_asks_what_its_parts_ask(serve):
    """Of each model all that any of them does, once for each frame of each item."""
    reward = {"vqascore": {"weight": 0.5}, "clipscore": {"weight": 0.5}, "dsg": {"weight": 1.0}}
    items = [UnopenedItem("a dog", [ImageRef(png())] * 3)] * 2
    async with serve(composites={"reward": reward}) as client:
        plan = Plan(items, ["reward"], service_of(client).engine.catalog, INTERACTIVE)

    asked = {handle.name: demand for handle, demand in plan.work.demands.items()}
    frames, words = 6, len("a dog")
    template = len("{} Please answer yes or no.")
    assert Demand(2, words) * frames == asked["clip"]
    assert (Demand(1, words + len("Yes")) + Demand(8, 8 * template)) * frames == asked["vqa"]
