"""
Workloads of trainers, filters and pipelines: what is sent, and when.

A workload is a pure function of its spec: the same seed gives the same pictures, prompts and times.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import orjson

from loadtest import corpus


@dataclass(frozen=True, slots=True)
class Spec:
    """
    Which workload, how much of it.

    Attributes:
        scale: of the bursts: 1 is the real size.
        rate: requests a second, where they come at random.
        seconds: how long they come.
        picture: kind of the corpus, for the workloads that don't fix it.
        timeout_ms: of each request; the generator waits that long, too.
    """

    workload: str
    seed: int = 0
    scale: float = 1.0
    rate: float = 10.0
    seconds: float = 10.0
    picture: str = "tiny"
    metric: str = "vqascore"
    timeout_ms: int = 120_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: when it is due, what it holds, and the lane it goes to."""

    at_s: float
    items: int
    lane: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """Requests in order of time; with *concurrency*, as many at once and times mean nothing."""

    arrivals: Sequence[Arrival]
    concurrency: int | None = None


class Maker:
    """Makes requests with pictures of which no two are the same."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec, self.random, self._folder = spec, Random(f"{spec.workload}-{spec.seed}"), folder
        self.prompts = corpus.prompts(self.random)
        self._pictures: dict[str, Iterator[bytes]] = {}

    def picture(self, kind: str) -> str:
        """The base64 of a new picture."""
        if kind not in self._pictures:
            self._pictures[kind] = corpus.distinct(kind, self.random, self._folder)
        return base64.b64encode(next(self._pictures[kind])).decode()

    def request(self, at_s: float, lane: str, kind: str, prompts: Sequence[str]) -> Arrival:
        """A request with one new picture for each of *prompts*."""
        body = {
            "items": [{"prompt": prompt, "image": self.picture(kind)} for prompt in prompts],
            "metrics": [self.spec.metric],
            "priority": lane,
            "timeout_ms": self.spec.timeout_ms,
        }
        return Arrival(at_s, len(prompts), lane, orjson.dumps(body))

    def times(self) -> Iterator[float]:
        """Poisson arrivals at the spec's rate for its seconds."""
        at = self.random.expovariate(self.spec.rate)
        while at < self.spec.seconds:
            yield at
            at += self.random.expovariate(self.spec.rate)

    def scaled(self, count: int) -> int:
        """*count* at the spec's scale, at least 1."""
        return max(1, round(count * self.spec.scale))

    def shuffled(self, images: int, each: int, at_once: int) -> list[list[str]]:
        """Prompts for *images* pictures, *each* of them for a prompt, shuffled and dealt *at_once*."""
        drawn = list(islice(self.prompts, -(-images // each)))
        dealt = (drawn * each)[:images]
        self.random.shuffle(dealt)
        return [dealt[start : start + at_once] for start in range(0, images, at_once)]


def rl_burst(maker: Maker, at_s: float = 0.0) -> Plan:
    """512 single-image requests at once, one prompt per 16 images, shuffled (verl-omni)."""
    groups = maker.shuffled(maker.scaled(512), 16, 1)
    return Plan([maker.request(at_s, "bulk", "rl", prompts) for prompts in groups])


def rl_group(maker: Maker) -> Plan:
    """32 requests of 9 images, every prompt in 24 of them (flow_grpo)."""
    groups = maker.shuffled(9 * maker.scaled(32), 24, 9)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups])


def rl_large(maker: Maker) -> Plan:
    """6 requests of 128 images at once (UniRL)."""
    groups = maker.shuffled(6 * maker.scaled(128), 16, maker.scaled(128))
    return Plan([maker.request(0.0, "bulk", "rl-fine", prompts) for prompts in groups])


def filtered(maker: Maker) -> Plan:
    """Poisson, 1 image (80 %) or 4 of a new prompt; a fifth of the files are PNG (an online filter)."""
    return Plan([filter_request(maker, at) for at in maker.times()])


def filter_request(maker: Maker, at_s: float) -> Arrival:
    kind = maker.random.choices(("jpeg", "webp", "png"), (5, 3, 2))[0]
    images = maker.random.choices((1, 4), (8, 2))[0]
    return maker.request(at_s, "interactive", kind, [next(maker.prompts)] * images)


def rank(maker: Maker) -> Plan:
    """One prompt with 3 to 9 images of 1024², Poisson (best of N)."""
    sizes = ((at, maker.random.randint(3, 9)) for at in maker.times())
    return Plan([maker.request(at, "interactive", "jpeg", [next(maker.prompts)] * n) for at, n in sizes])


def offline(maker: Maker) -> Plan:
    """7,200 images, 9 for each of 800 prompts, one a request, 64 at once."""
    groups = maker.shuffled(maker.scaled(7200), 9, 1)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups], concurrency=64)


def mixed(maker: Maker) -> Plan:
    """The filter while bursts of RL repeat, one every five seconds."""
    arrivals = [filter_request(maker, at) for at in maker.times()]
    for start in range(0, round(maker.spec.seconds), 5):
        arrivals += rl_burst(maker, float(start)).arrivals
    return Plan(sorted(arrivals, key=lambda arrival: arrival.at_s))


def whole(maker: Maker) -> Plan:
    """512 images in requests of 128, all sent at once: what an offline run over a file does."""
    groups = maker.shuffled(maker.scaled(512), 16, 128)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups])


def one_prompt(maker: Maker) -> Plan:
    """24 pictures of one prompt in 24 requests at once."""
    prompt = [next(maker.prompts)]
    return Plan([maker.request(0.0, "bulk", "rl", prompt) for _ in range(24)])


def poisson(maker: Maker) -> Plan:
    """Single pictures at random times."""
    prompt = [next(maker.prompts)]
    return Plan([maker.request(at, "interactive", maker.spec.picture, prompt) for at in maker.times()])


def saturated(maker: Maker) -> Plan:
    """Single interactive pictures at random times, and every half second 128 bulk ones."""
    bulk = [next(maker.prompts)] * maker.scaled(128)
    steps = range(round(2 * maker.spec.seconds))
    arrivals = [maker.request(step / 2, "bulk", maker.spec.picture, bulk) for step in steps]
    arrivals += poisson(maker).arrivals
    return Plan(sorted(arrivals, key=lambda arrival: arrival.at_s))


def closed(maker: Maker, concurrency: int) -> Plan:
    """Single pictures, the next one sent when one is answered; `rate` times `seconds` of them."""
    prompt = [next(maker.prompts)]
    count = round(maker.spec.rate * maker.spec.seconds)
    arrivals = [maker.request(0.0, "interactive", maker.spec.picture, prompt) for _ in range(count)]
    return Plan(arrivals, concurrency)


# By the names of docs/load.md; the ones after `mixed` are for single figures.
WORKLOADS: dict[str, Callable[[Maker], Plan]] = {
    "rl-burst": rl_burst,
    "rl-group": rl_group,
    "rl-large": rl_large,
    "filter": filtered,
    "rank": rank,
    "offline": offline,
    "mixed": mixed,
    "whole": whole,
    "one-prompt": one_prompt,
    "poisson": poisson,
    "saturated": saturated,
    "one-by-one": lambda maker: closed(maker, 1),
    "sixteen-at-once": lambda maker: closed(maker, 16),
}


def plan(spec: Spec, folder: Path = corpus.FOLDER) -> Plan:
    """The requests of *spec*."""
    return WORKLOADS[spec.workload](Maker(spec, folder))
