"""A gateway of replicas that come, go, hang and change their model: a request has scores of one model."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from models.core.calls import LikelihoodCall
from models.core.contract import ModelInfo
from models.families.fake.model import COST, GREY, answer
from models.images.image import Image
from service.core.concurrency.cpu_threads import FairThreads
from service.core.errors import (
    DeadlineExceeded,
    Draining,
    LaneFull,
    ModelChanged,
    ModelFault,
    Overloaded,
    ScoregateError,
)
from service.core.lanes import LANES
from service.scoring.engine import raise_if_changed, repeated
from service.serving.batcher.batching import Queue
from service.serving.cache import NO_CACHE
from service.serving.context import Context
from service.serving.handle import Handle
from service.serving.job import JobResult
from service.serving.ray.backend import ReplicatedBackend
from service.serving.ray.groups import Described, GroupResult, Lost, Work
from tests.app.fuzz_serving.findings import Findings
from tests.support.instruments import unread

MODELS = ("m0", "m1")
EXPECTED = ModelFault, Overloaded, LaneFull, DeadlineExceeded  # ways in which a call may end without a score


def answer_of(model: str, call: LikelihoodCall) -> Any:
    """Return the outcome of *call* by a model."""
    return answer(LikelihoodCall(call.image, call.question + model))


class Replicas:
    """Replicas that answer late or never, drain and get lost; each answers with its own model."""

    def __init__(self, dice: Random) -> None:
        self.dice, self.hang = dice, True
        self.models: dict[str, str] = {}  # by replica
        self.listeners: set[Callable[[Sequence[str]], None]] = set()

    def run(self, models: dict[str, str]) -> None:
        """Let these run from now on."""
        self.models = models
        for listener in self.listeners:
            listener(tuple(models))

    def listen(self, listener: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        self.listeners.add(listener)
        listener(tuple(self.models))
        return lambda: self.listeners.discard(listener)

    async def describe(self, replica: str) -> Described:
        await asyncio.sleep(self.dice.choice([0, 0.002]))
        if replica not in self.models or self.dice.random() < 0.1:
            raise Lost("not there")
        info = ModelInfo("vqa", "fake", self.models[replica], "1", "float32", "cpu")
        return Described(replica, info, COST, 0.003)

    async def ask(self, replica: str, group: str, model: str, calls: Sequence[Any]) -> GroupResult | None:
        await asyncio.sleep(self.dice.choice([0, 0.001, 0.004, 0.01]))
        if replica not in self.models:
            raise Lost("gone")
        own, chance = self.models[replica], self.dice.random()
        if model != f"{own}@1 float32":
            return None
        if chance < 0.05:
            raise Lost("broken off")
        if chance < 0.06 and self.hang:
            await asyncio.sleep(1000)
        return GroupResult([self.result(own, sent.call) for sent in calls], Work())

    def result(self, model: str, call: LikelihoodCall) -> JobResult:
        chance = self.dice.random()
        if chance < 0.03:
            return JobResult(Draining())
        if chance < 0.04:
            return JobResult(DeadlineExceeded(stage="queue"))
        return JobResult(answer_of(model, call), 0.0, 0.001 + self.dice.random() / 1e6)

    async def promote(self, replica: str, group: str) -> None:
        await asyncio.sleep(0)


async def ask(handle: Handle, number: int, findings: Findings) -> None:
    """Send a request, and check that all of its scores are those of one model."""
    dice, loop = findings.dice, asyncio.get_running_loop()
    context = Context("request", loop.time() + 5, dice.choice(LANES), unread("vqa"))
    calls = []
    for each in range(dice.randint(1, 9)):
        picture = Image(GREY.encoded, f"picture {dice.randrange(5)}")
        shared = dice.random() < 0.3
        calls.append(
            LikelihoodCall(picture, f"shared {dice.randrange(4)}" if shared else f"own {number} {each}")
        )
    if dice.random() < 0.1:
        loop.call_later(0.002, context.promote)

    async def outcomes_of(context: Context) -> list[Any]:
        outcomes = await handle.call(calls, context)
        raise_if_changed(outcomes)
        return outcomes

    try:
        outcomes = await repeated(outcomes_of, context)
    except ModelChanged:  # twice meanwhile
        return
    possible = set(MODELS)
    for call, outcome in zip(calls, outcomes, strict=True):
        if isinstance(outcome, ScoregateError):
            findings.expect(isinstance(outcome, EXPECTED), call.question, "failed with", repr(outcome))
            continue
        of = {model for model in MODELS if outcome == answer_of(model, call)}
        findings.expect(of, call.question, "has the answer of no model")
        possible &= of
    findings.expect(possible, "a request has scores of several models")


def unfinished(tasks: Sequence["asyncio.Task[None]"]) -> list["asyncio.Task[None]"]:
    """Return the tasks that have not ended."""
    return [task for task in tasks if not task.done()]


async def fuzz(seed: int) -> list[str]:
    """Return what one run finds."""
    findings = Findings(seed)
    dice, replicas, tasks = findings.dice, Replicas(findings.dice), list[asyncio.Task[None]]()
    replicas.run({"first": MODELS[0]})
    with FairThreads(2, "cpu") as cpu:
        async with ReplicatedBackend(
            "vqa",
            replicas,
            lambda alone=False: Queue(max_items=dice.choice([1, 4, 8]), max_cost=1000, max_waiting=10_000),
            cpu=dict.fromkeys(LANES, cpu),
            instruments=unread("vqa"),
            grace_s=0.05,
            sleep=lambda seconds: asyncio.sleep(0.003),
        ) as backend:
            await backend.ready.wait()
            handle = Handle(backend, NO_CACHE)
            for step in range(60):
                chance = dice.random()
                if chance < 0.6:
                    tasks.append(asyncio.create_task(ask(handle, step, findings)))
                elif chance < 0.7 and tasks:
                    dice.choice(tasks).cancel()
                elif chance < 0.85:
                    names = {f"{dice.choice('abcdef')}{dice.randrange(3)}" for _ in range(dice.randint(0, 3))}
                    replicas.run({name: dice.choice(["m0", "m0", "m1"]) for name in sorted(names)})
                await asyncio.sleep(dice.choice([0, 0.001, 0.004]))
            replicas.hang = False
            replicas.run({"last": MODELS[0], "other": MODELS[0]})
            unanswered = partial(unfinished, tasks)
            await findings.comes(
                lambda: not unanswered(), lambda: f"not answered: {len(unanswered())} requests"
            )
            for task in tasks:
                task.cancel()
            for end in await asyncio.gather(*tasks, return_exceptions=True):
                expected = end is None or isinstance(end, asyncio.CancelledError)
                findings.expect(expected, "a request raised", repr(end))
            findings.expect(not backend._strays.waiting, "calls wait for a replica")
    return findings
