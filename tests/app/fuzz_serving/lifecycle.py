"""A model that goes and comes under traffic: scores are those of the model that a response names."""

import asyncio
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from models.core.calls import LikelihoodCall
from service.serving.backends.local import WeightLoader
from tests.app.fuzz_serving.findings import Findings
from tests.support.app import served, service_of
from tests.support.fakes import FakeVqa, new_fakes
from tests.support.pictures import b64, png

CALLERS, OPERATORS, REQUESTS = 12, 2, 8  # of each caller
METRICS = (["vqascore"], ["vqascore", "clipscore"], ["dsg", "vqascore"])
REVISIONS = ("second", "third")
CHANGES = ("offload", "unload", "load", "load", "load", *REVISIONS)
STATUSES = {200, 409, 429, 503, 504}  # of answers to callers and operators
CODES = {"not_ready", "deadline_exceeded", "lane_full", "overloaded", "question_llm_failed"}  # of one metric
PICTURES = [b64(png(colour)) for colour in ("red", "green", "blue", "black")]


class Revision(FakeVqa):
    """A model whose scores depend on its revision."""

    def __init__(self, revision: str) -> None:
        super().__init__()
        self.info = replace(self.info, revision=revision)

    def answer(self, call: LikelihoodCall) -> Any:
        return super().answer(LikelihoodCall(call.image, f"{call.question} {self.info.revision}"))


# It loads revisions in place of checkpoints.
WEIGHTS = WeightLoader(
    check=lambda name, table, given_back: None,
    load=lambda name, table: Revision(table.revision or "first"),
)


class Traffic:
    """Callers who score and leave, and operators who change the model."""

    def __init__(self, findings: Findings, client: httpx.AsyncClient) -> None:
        self.findings, self.dice, self.client = findings, findings.dice, client
        self.scores: dict[tuple[str, int, str], set[float]] = defaultdict(set)
        self.callers = CALLERS

    async def call(self) -> None:
        """Send requests one after the other, and leave some of them."""
        for _ in range(REQUESTS):
            chosen = [(self.dice.randrange(4), f"a square {self.dice.randrange(30)}") for _ in range(4)]
            body = {
                "items": [{"image": PICTURES[picture], "prompt": prompt} for picture, prompt in chosen],
                "metrics": self.dice.choice(METRICS),
                "priority": self.dice.choice(["bulk", "interactive"]),
                "timeout_ms": self.dice.choice([30, 3000, 3000]),
            }
            sent = asyncio.create_task(self.client.post("/score", json=body))
            if self.dice.random() < 0.1:
                await asyncio.sleep(self.dice.random() * 0.02)
                sent.cancel()
                await asyncio.gather(sent, return_exceptions=True)
            else:
                self.check(await sent, chosen)
            await asyncio.sleep(self.dice.random() * 0.01)
        self.callers -= 1

    def check(self, answer: httpx.Response, chosen: list[tuple[int, str]]) -> None:
        """Note an unexpected error, and keep the scores by the model that they name."""
        expect, body = self.findings.expect, answer.json()
        expect(answer.status_code in STATUSES, "a request ended as", answer.status_code, body)
        for (picture, prompt), result in zip(chosen, body.get("results", ()), strict=False):
            if "vqascore" in result["scores"]:
                self.scores[body["models"]["vqa"], picture, prompt].add(result["scores"]["vqascore"])
            for metric, error in result.get("errors", {}).items():
                expect(error["code"] in CODES, metric, "failed with", error)

    async def operate(self) -> None:
        """Change the model until all callers have their answers."""
        while self.callers:
            await self.change(self.dice.choice(CHANGES))
            await asyncio.sleep(self.dice.random() * 0.1)

    async def change(self, what: str) -> None:
        """Let the model go or come, or load a revision of it."""
        body = {"revision": what} if what in REVISIONS else {}
        action = "load" if body else what
        answer = await self.client.post(f"/models/vqa/{action}", json=body)
        self.findings.expect(answer.status_code in STATUSES, action, "ended as", answer.text)


async def fuzz(seed: int) -> list[str]:
    """Return what one run finds."""
    findings = Findings(seed)
    fakes = {**new_fakes(), "vqa": Revision("first")}
    queue = {"wait_for_models": findings.dice.random() < 0.5}
    with tempfile.TemporaryDirectory() as folder:
        async with served(fakes, Path(folder), {"weights": WEIGHTS}, queue=queue) as client:
            client._transport.app.state.operators = True  # type: ignore[attr-defined]
            traffic = Traffic(findings, client)
            async with asyncio.timeout(60):
                await asyncio.gather(
                    *(traffic.call() for _ in range(CALLERS)), *(traffic.operate() for _ in range(OPERATORS))
                )
                await traffic.change("load")
            several = {key: scores for key, scores in traffic.scores.items() if len(scores) > 1}
            findings.expect(not several, "several scores under one name:", several)
            findings.expect(traffic.scores, "nothing was scored")
            await nothing_left(findings, client)
    return findings


async def nothing_left(findings: Findings, client: httpx.AsyncClient) -> None:
    """Note calls, requests and memory that are counted though nobody waits any more."""
    service = service_of(client)
    handle = service.runtime.handles["vqa"]
    queue, presence = handle.backend._hosted.queue, handle.backend.presence  # type: ignore[attr-defined]
    await findings.comes(lambda: not handle.under_way, lambda: f"{handle.under_way} calls are left")
    findings.expect(presence.state == "loaded", "the model is", presence.state)
    findings.expect(not presence._requests, "requests use the model:", presence._requests)
    await findings.comes(lambda: not any(queue.depth.values()), lambda: f"calls wait: {queue}")
    findings.expect(max(map(abs, queue.reserved.values())) < 1e-6, "reserved:", queue.reserved)
    await findings.comes(lambda: not service.images.pixels.held, lambda: "memory of pixels is held")
    findings.expect(not service.memory.held, "bytes are held:", service.memory.held)
