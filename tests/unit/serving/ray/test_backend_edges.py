"""Calls that cannot travel to a replica, replicas that are listed twice, and a gateway that closes."""

import asyncio

import pytest

from models.core.calls import LabelCall, LikelihoodCall
from models.core.outcomes import Likelihood
from models.families.fake.model import GREY
from models.images.image import Image
from service.core.errors import Draining, ModelFault
from service.observability.instruments import Instruments
from tests.support.handles import asking, call
from tests.unit.serving.ray.replicas import about, answered, asked, sent

pytestmark = pytest.mark.anyio


class Unreadable(Image):
    """One whose file cannot be had, since its decoder was killed while it wrote."""

    @property
    def encoded(self):
        raise ValueError("not enough image data")


@pytest.mark.parametrize(
    "bad",
    [
        LikelihoodCall(Unreadable(GREY.encoded, "bad"), "q?"),
        LabelCall(GREY, "q?", ("a",), ("before", Unreadable(GREY.encoded, "bad"))),
    ],
)
async def test_a_call_that_cannot_be_made_ready_to_travel_fails_alone(bad):
    """Whatever the error is; its group is answered."""
    async with asked(a="m") as (deployment, handle, _):
        task, _ = asking(handle, bad, call("good?"))
        outcomes = await answered(deployment, task)
        assert [type(outcome) for outcome in outcomes] == [ModelFault, Likelihood]
        assert handle.under_way == 0


async def test_a_replica_that_is_listed_twice_keeps_what_waits_for_it():
    """Two of its answers to the question what it holds may arrive."""
    async with asked(a="m") as (deployment, handle, backend):
        task, _ = asking(handle, *about(40))
        await sent(deployment, 2)
        backend._came(await deployment.describe("a"))
        outcomes = await answered(deployment, task)
        assert [type(outcome) for outcome in outcomes] == [Likelihood] * 40


async def test_who_waits_when_the_gateway_closes_is_told_that_it_shuts_down():
    async with asked(a="m") as (deployment, handle, backend):
        task, _ = asking(handle, *about(30))
        await sent(deployment, 2)
        await backend.__aexit__()
        assert {type(outcome) for outcome in await task} == {Draining}


async def test_calls_that_wait_until_there_is_a_replica_are_in_the_depth_of_the_queue():
    """Without their callers they do not wait: a deployment may be away for long."""
    instruments = Instruments(["vqa"])

    def depth():
        labels = {"model": "vqa", "lane": "interactive"}
        return instruments.registry.get_sample_value("scoregate_queue_depth", labels)

    async with asked(instruments=instruments, a="m") as (deployment, handle, backend):
        deployment.runs()
        task, _ = asking(handle, *about(8))
        while not backend._strays.waiting:
            await asyncio.sleep(0)
        waiting = depth()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        assert (8.0, 0.0) == (waiting, depth())
