"""Pools with several models and devices: each call has its own answer, and nothing is left."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from models.core.contract import ModelInfo, Prepared
from models.core.outcomes import Text
from service.core.errors import DeadlineExceeded, Draining, ModelFault
from service.observability.instruments import Instruments
from service.serving.batcher.batching import Queue
from service.serving.batcher.device import Device
from service.serving.batcher.pool import LocalModel, Pool
from service.serving.batcher.scheduler import HostedModel
from service.serving.job import Job
from tests.app.fuzz_serving.findings import Findings

LATE_S = (0.0, 0.003)  # deadlines that calls may miss
DYING = 3  # one run of so many has models that die


class Word(NamedTuple):
    """The content of a call."""

    number: int
    bad: bool = False


class Copy:
    """A model on one device: it answers with what it is asked, and fails on bad words."""

    def __init__(self, findings: Findings, name: str, *, reentrant: bool) -> None:
        self.findings, self.dice = findings, findings.dice
        self.info = ModelInfo("vqa", "fake", name, "1", "float32", "cpu", reentrant=reentrant)
        self.dead, self.running = False, 0

    def example(self) -> Word:
        return Word(-1)

    def prepare(self, call: Word) -> Prepared:
        return Prepared(1, call)

    def score(self, batch: Sequence[Prepared]) -> list[Text]:
        self.running += 1
        self.findings.expect(self.info.reentrant or self.running == 1, "two batches ran on one copy")
        try:
            time.sleep(self.dice.choice([0, 0, 0.001, 0.004]))
            if self.dead or any(prepared.data.bad for prepared in batch):
                raise RuntimeError("on purpose")
            if len(batch) > 2 and self.dice.random() < 0.02:
                raise MemoryError
            return [Text(repr(prepared.data)) for prepared in batch]
        finally:
            self.running -= 1


class Sent(NamedTuple):
    """A call in a queue, its content and whether it may miss its deadline."""

    call: Job
    word: Word
    late: bool


class Traffic:
    """Random calls of a pool, and what else happens to it."""

    def __init__(self, findings: Findings) -> None:
        self.findings, self.dice = findings, findings.dice
        dice = self.dice
        names = [f"model {number}" for number in range(dice.randint(1, 3))]
        cpu = dice.random() < 0.3
        devices = ["cpu"] if cpu else [f"device {number}" for number in range(dice.randint(1, 4))]
        self.hosted_models = [self.hosted(name, devices, cpu=cpu) for name in names]
        self.broken: list[str] = []
        self.sent: list[Sent] = []
        used = [name for name in devices if any(name in each.copies for each in self.hosted_models)]
        self.pool = Pool(
            self.hosted_models,
            Instruments(names),
            devices=[Device(name, dice.choice([1, 2, 4, 16]) if cpu else 1) for name in used],
            on_broken=self.broken.append,
        )

    def hosted(self, name: str, devices: Sequence[str], *, cpu: bool) -> LocalModel:
        """Return a model on some of the devices, with a queue of its own limits."""
        dice = self.dice
        queue = Queue(
            max_items=dice.choice([1, 2, 8]),
            max_cost=dice.choice([3, 1000]),
            max_waiting=10**6,
            linger_s=dice.choice([0, 0, 0.003]),
            max_batch_s=dice.choice([0.003, 1e9]),
        )
        copies: dict[str, Any] = {
            device: Copy(self.findings, name, reentrant=cpu and dice.random() < 0.7)
            for device in dice.sample(devices, dice.randint(1, len(devices)))
        }
        large = True if cpu and dice.random() < 0.3 else None
        return HostedModel(name, next(iter(copies.values())), queue, copies=copies, large=large)

    async def step(self) -> None:
        """Let one thing happen."""
        hosted, what = self.dice.choice(self.hosted_models), self.dice.random()
        if what < 0.75:
            for _ in range(self.dice.randint(1, 6)):
                self.submit(hosted)
        elif what < 0.80 and self.sent:
            self.dice.choice(self.sent).call.cancel()
        elif what < 0.85 and self.sent:
            self.dice.choice(self.sent).call.promote()
        elif what < 0.87:
            with hosted.queue.pending.expecting("bulk", 2, self.pool.clock):
                await asyncio.sleep(self.dice.choice([0, 0.002]))
        elif what < 0.875 and self.findings.seed % DYING == 0 and hosted.copies:
            self.dice.choice(list(hosted.copies.values())).dead = True  # type: ignore[attr-defined]
        elif what < 0.885 and hosted.copies:
            await self.pool.pause(hosted)
            await asyncio.sleep(0)
            self.pool.resume(hosted)
        else:
            await asyncio.sleep(self.dice.choice([0, 0, 0.001, 0.005]))

    def submit(self, hosted: LocalModel) -> None:
        """Queue a call, unless the pool has closed."""
        word = Word(len(self.sent), bad=self.dice.random() < 0.02)
        left_s = self.dice.choice([*LATE_S, 5, 5, 5])
        lane, deadline = self.dice.choice(["bulk", "interactive"]), asyncio.get_running_loop().time() + left_s
        with suppress(Draining, ModelFault):
            job = Job(Prepared(1, word), lane, deadline=deadline)
            self.pool.submit(hosted, job)
            self.sent.append(Sent(job, word, left_s in LATE_S))

    def unanswered(self) -> list[Word]:
        """Return the calls without a result."""
        return [sent.word for sent in self.sent if not sent.call.result.done()]

    def check(self) -> None:
        """Note each answer that is not that of its call, and what is left."""
        expect, dying = self.findings.expect, self.findings.seed % DYING == 0
        for call, word, late in self.sent:
            if not call.result.done() or call.result.cancelled():
                continue
            outcome = call.result.result().outcome
            if isinstance(outcome, Text):
                expect(outcome.text == repr(word) and not word.bad, word, "got the answer", outcome)
            elif isinstance(outcome, DeadlineExceeded):
                expect(late, word, "missed a deadline that is far away")
            else:
                expect(word.bad or dying, word, "failed with", repr(outcome))
        for hosted in self.hosted_models:
            lanes = hosted.queue._lanes.values()
            expect(not any(lanes), hosted.name, "keeps calls", hosted.queue)
            costs = {lane: tally.total for lane, tally in hosted.queue._cost.items()}
            expect(not sum(costs.values()), hosted.name, "counts", costs)
        expect(not self.pool.scheduler.running, "batches are counted as running")
        expect(self.broken or self.pool.running, "the pool has stopped")


async def fuzz(seed: int) -> list[str]:
    """Return what one run finds."""
    findings = Findings(seed)
    traffic = Traffic(findings)
    async with traffic.pool:
        for _ in range(findings.dice.randint(30, 150)):
            await traffic.step()
        unanswered = traffic.unanswered
        await findings.comes(lambda: not unanswered(), lambda: f"not answered: {unanswered()[:3]}")
        await findings.comes(lambda: not traffic.pool.scheduler.running, lambda: "batches do not end")
        traffic.check()
    return findings
