"""A maker of requests for workloads."""

import base64
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import orjson

from loadtest.workloads import corpus
from loadtest.workloads.questions import SET
from loadtest.workloads.spec import Arrival, Spec


class Maker:
    """Makes requests with distinct pictures."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec, self.random, self._folder = spec, Random(f"{spec.workload}-{spec.seed}"), folder
        self.prompts = corpus.prompts(self.random)
        self._pictures: dict[str, Iterator[bytes]] = {}

    def picture(self, kind: str) -> str:
        """Return the base64 of a new picture."""
        if kind not in self._pictures:
            self._pictures[kind] = corpus.distinct(kind, self.random, self._folder)
        return base64.b64encode(next(self._pictures[kind])).decode()

    def request(self, at_s: float, lane: str, kind: str, prompts: Sequence[str]) -> Arrival:
        """Return a request with one new picture for each of *prompts*."""
        body: dict[str, Any] = {
            "items": [{"prompt": prompt, "image": self.picture(kind)} for prompt in prompts],
            "metrics": [self.spec.metric],
            "priority": lane,
            "timeout_ms": self.spec.timeout_ms,
        }
        if self.spec.questions:
            body["options"] = {self.spec.metric: {"question_set": SET}}
        return Arrival(at_s, len(prompts), lane, orjson.dumps(body))

    def times(self) -> Iterator[float]:
        """Yield Poisson arrivals at the spec's rate for its seconds."""
        at = self.random.expovariate(self.spec.rate)
        while at < self.spec.seconds:
            yield at
            at += self.random.expovariate(self.spec.rate)

    def scaled(self, count: int) -> int:
        """Return *count* at the spec's scale, at least 1."""
        return max(1, round(count * self.spec.scale))

    def shuffled(self, images: int, each: int, at_once: int) -> list[list[str]]:
        """
        Return prompts for *images* pictures, *each* pictures a prompt, shuffled and split into lists of
        *at_once*.
        """
        drawn = list(islice(self.prompts, -(-images // each)))
        dealt = (drawn * each)[:images]
        self.random.shuffle(dealt)
        return [dealt[start : start + at_once] for start in range(0, images, at_once)]
