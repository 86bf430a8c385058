"""A handle on a model of a device, and what tests do with it."""

import asyncio
from contextlib import asynccontextmanager
from time import monotonic

from models.core.calls import LikelihoodCall
from models.core.settings import ModelSettings
from models.families.fake.model import GREY
from models.images.image import Image
from service.core.concurrency.cpu_threads import FairThreads
from service.core.lanes import LANES
from service.serving.backends.local import LocalBackend
from service.serving.batcher.batching import Queue
from service.serving.batcher.pool import Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.cache import NO_CACHE
from service.serving.context import Context
from service.serving.handle import RECHECK_S, Handle
from tests.support.fakes import FakeVqa
from tests.support.instruments import unread

TABLE = ModelSettings(role="vqa", family="fake")


class Later:
    """The loop's `call_later`, which does what was left to it when it is told to."""

    def __init__(self):
        self.left = []

    def __call__(self, seconds, work):
        self.left.append((seconds, work))

    def come(self):
        for _, work in self.left:
            work()


class HeldPreparation:
    """
    A backend whose preparation can be held, or fail.

    Attributes:
        begun: set when calls are prepared.
        go: cleared to hold them.
        fault: raised instead of preparing them.
    """

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.begun, self.go, self.fault = asyncio.Event(), asyncio.Event(), None
        self.go.set()

    async def prepare(self, calls, lane):
        self.begun.set()
        await self.go.wait()
        if self.fault:
            raise self.fault
        return await super().prepare(calls, lane)


class HeldLocalBackend(HeldPreparation, LocalBackend):
    """A model of this process."""


@asynccontextmanager
async def serving(
    cache=NO_CACHE,
    clock=monotonic,
    recheck_s=RECHECK_S,
    instruments=None,
    name="vqa",
    queue=Queue,
    backend=LocalBackend,
    **limits,
):
    """A model on a device with a *clock*, a handle on it, and the clock of what it does later."""
    model, later = FakeVqa(), Later()
    limits = {"max_items": 8, "max_cost": 1000, "max_waiting": 10_000, **limits}
    hosted = HostedModel(name, model, queue(**limits))
    with FairThreads(1, "cpu") as cpu:
        async with Pool([hosted], instruments or unread(name), clock=clock) as device:
            made = backend(hosted, device, TABLE, dict.fromkeys(LANES, cpu), cpu)
            handle = Handle(made, cache, later, recheck_s)
            yield handle, model, later, hosted
            await handle.aclose()


def context(lane="interactive", seconds=60.0):
    deadline = asyncio.get_running_loop().time() + seconds
    return Context("request", deadline, lane, unread("vqa"))


def call(question="Is it?", digest="grey"):
    return LikelihoodCall(Image(GREY.encoded, digest), question)


def asking(handle, *calls, lane="interactive", seconds=60.0):
    asked = context(lane, seconds)
    task = asyncio.create_task(handle.call(calls, asked))
    return task, asked


async def held(handle, model):
    """The device is busy."""
    model.hold.clear()
    task, _ = asking(handle, call("busy"))
    await until(lambda: model.held or task.done())
    return task


async def until(true):
    for _ in range(10_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came")


def questions(model):
    return [call.question for call in model.calls]
