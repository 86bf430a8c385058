"""A deployment whose replicas answer when they are told to, and a handle on it."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from models.core.calls import LikelihoodCall
from models.core.contract import ModelInfo
from models.families.fake.model import COST, GREY, answer
from models.images.image import Image
from service.core.concurrency.cpu_threads import FairThreads
from service.core.lanes import LANES
from service.serving.batcher.batching import Queue
from service.serving.cache import NO_CACHE
from service.serving.handle import Handle
from service.serving.job import JobResult
from service.serving.ray.backend import ReplicatedBackend
from service.serving.ray.groups import Described, GroupResult, Lost, Work
from tests.support.instruments import unread

BATCH = 8
HANGS_S = 20  # what has not been answered by then never will be
WAITED_S, RAN_S = 0.5, 0.25  # by every group that is answered


@dataclass
class Group:
    """One that was sent, and what its replica says to it."""

    replica: str
    name: str
    calls: list
    said: asyncio.Future = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def answered(self, work=None, **more):
        """By the model."""
        results = [JobResult(answer(sent.call), WAITED_S, RAN_S, **more) for sent in self.calls]
        self.said.set_result(GroupResult(results, work or Work()))

    def lost(self):
        """With its replica."""
        self.said.set_exception(Lost("ActorDiedError"))

    @property
    def questions(self):
        return [sent.call.question for sent in self.calls]


class FakeDeployment:
    """What `ServeDeployment` is to the backend.  Its replicas hold the model with the id that they have."""

    def __init__(self):
        self.holds, self.groups, self.promoted, self.listeners = {}, [], [], set()

    def runs(self, **replicas):
        """Say that these run from now on, each with the model of that id."""
        self.holds = replicas
        for listener in self.listeners:
            listener(tuple(replicas))

    def listen(self, listener):
        self.listeners.add(listener)
        listener(tuple(self.holds))
        return lambda: self.listeners.discard(listener)

    async def describe(self, replica):
        if replica not in self.holds:
            raise Lost("no such replica")
        info = ModelInfo("vqa", "fake", self.holds[replica], "1", "float32", "cpu")
        return Described(replica, info, COST, 0.01)

    async def ask(self, replica, group, model, calls):
        if model != f"{self.holds.get(replica)}@1 float32":
            return None
        sent = Group(replica, group, calls)
        self.groups.append(sent)
        try:
            return await sent.said
        finally:
            self.under_way_changed = True

    async def promote(self, replica, group):
        self.promoted.append((replica, group))

    @property
    def under_way(self):
        return [group for group in self.groups if not group.said.done()]

    def answer_all(self):
        for group in self.under_way:
            group.answered()


@asynccontextmanager
async def asked(
    cache=NO_CACHE,
    clock=monotonic,
    instruments=None,
    grace_s=HANGS_S,
    threads=FairThreads,
    queue=Queue,
    backend=ReplicatedBackend,
    **replicas,
):
    """A deployment with these replicas, and a handle and a backend that ask it."""
    deployment = FakeDeployment()
    deployment.runs(**replicas)
    limits = {"max_cost": 10_000, "max_waiting": 100_000}

    def make_queue(alone):
        return queue(max_items=1 if alone else BATCH, **limits)

    async def no_sleep(seconds):
        await asyncio.sleep(0)

    async with asyncio.timeout(HANGS_S):
        with threads(1, "cpu") as cpu:
            made = backend(
                "vqa",
                deployment,
                make_queue,
                cpu=dict.fromkeys(LANES, cpu),
                instruments=instruments or unread("vqa"),
                grace_s=grace_s,
                sleep=no_sleep,
                clock=clock,
            )
            async with made:
                if replicas:
                    await made.ready.wait()
                    await known(made, len(replicas))
                handle = Handle(made, cache)
                yield deployment, handle, made
                await handle.aclose()


async def known(backend, replicas):
    """Return when the backend knows so many replicas that it asks."""
    while len(backend._replicas.in_use) != replicas:
        await asyncio.sleep(0)


def about(images, questions=1):
    """Calls about so many images, with so many questions each."""
    pictures = [Image(GREY.encoded, f"image {n}") for n in range(images)]
    return [LikelihoodCall(picture, f"question {n}?") for picture in pictures for n in range(questions)]


async def sent(deployment, groups):
    """Return when so many groups are under way."""
    while len(deployment.under_way) < groups:
        await asyncio.sleep(0)


async def settled():
    """Let everything happen that can happen now."""
    for _ in range(50):
        await asyncio.sleep(0.001)


async def answered(deployment, task):
    """The outcomes of *task*, from replicas that answer all that they are asked."""
    while not task.done():
        await asyncio.sleep(0)
        deployment.answer_all()
    return task.result()
