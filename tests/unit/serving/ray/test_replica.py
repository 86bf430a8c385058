"""A replica without Ray: groups that are promoted while it works on them."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from models.core.calls import LikelihoodCall
from models.core.outcomes import Likelihood
from models.families.fake.model import GREY
from models.images.image import Image
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import DeadlineExceeded, ImageUndecodable
from service.core.lanes import LANES
from service.serving.backends.local import LocalBackend
from service.serving.batcher.batching import Queue
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.ray.groups import Described, Recorder, Sent
from service.serving.ray.replica import Replica
from tests.support.fakes import FakeVqa
from tests.support.handles import TABLE, until

pytestmark = pytest.mark.anyio

DESCRIBED = Described("a", FakeVqa().info, 10, 0.01)


class Slow(FakeVqa):
    """A model whose calls are prepared when they may be."""

    def __init__(self):
        super().__init__()
        self.preparing, self.may_prepare = threading.Event(), threading.Event()

    def prepare(self, call):
        if call != self.example():
            self.preparing.set()
            self.may_prepare.wait(20)
        return super().prepare(call)


@asynccontextmanager
async def replica_around(model):
    """A replica of *model*, and its queue."""
    hosted = HostedModel("vqa", model, Queue(max_items=1, max_cost=1000, max_waiting=1000))
    work = Recorder("vqa")
    with FairThreads(1, "cpu") as cpu:
        async with Pool([hosted], work) as pool:
            backend = LocalBackend(hosted, pool, TABLE, dict.fromkeys(LANES, cpu), cpu)
            yield Replica(backend, work, DESCRIBED), hosted.queue


@pytest.mark.parametrize("when", ["while its calls are prepared", "while its calls wait"])
async def test_a_group_is_promoted_whenever_the_request_arrives(when):
    """Its calls move to the interactive lane, or join that lane when they are prepared."""
    model = Slow()
    async with replica_around(model) as (replica, queue):
        model.hold.clear()  # the device is busy with the first group

        def ask(name):
            sent = [Sent(LikelihoodCall(Image(GREY.encoded, name), "Is it?"), "bulk", 60.0)]
            return asyncio.create_task(replica.ask(name, DESCRIBED.model, sent))

        model.may_prepare.set()
        first = ask("first")
        await until(lambda: model.held)
        model.may_prepare.clear()
        model.preparing.clear()
        second = ask("second")
        await until(model.preparing.is_set)
        if when == "while its calls wait":
            model.may_prepare.set()
            await until(lambda: queue.depth["bulk"])
        await replica.promote("second")
        model.may_prepare.set()
        await until(lambda: queue.waiting)
        waiting = queue.waiting
        await replica.promote("of another time")
        model.hold.set()
        await asyncio.gather(first, second)

    assert "interactive" == waiting
    assert not replica._under_way


async def test_a_result_shows_that_no_batch_of_the_replica_took_its_call():
    """The picture could not be decoded, or the deadline had passed; gateways do not count such calls."""
    async with replica_around(FakeVqa()) as (replica, _):
        pictures = (GREY, 60.0), (Image(b"no picture"), 60.0), (GREY, -1.0)
        sent = [Sent(LikelihoodCall(image, "Is it?"), "bulk", left_s) for image, left_s in pictures]
        answered = await replica.ask("group", DESCRIBED.model, sent)

    outcomes = [(type(each.outcome), each.refused) for each in answered.results]
    assert [(Likelihood, False), (ImageUndecodable, True), (DeadlineExceeded, True)] == outcomes
