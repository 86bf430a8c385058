"""
Workloads by name: specifications, and the lists of requests made from them.

A workload is a pure function of its spec: the same seed gives the same pictures, prompts and times.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import orjson

from loadtest import corpus


@dataclass(frozen=True, slots=True)
class Spec:
    """
    Name and size of a workload.

    Attributes:
        scale: of the bursts: 1 is the real size.
        rate: requests a second, for random arrivals.
        seconds: duration of arrivals.
        image: kind of the corpus, for workloads that don't fix it.
        timeout_ms: of each request, also for the generator.
        questions: send the eight of `loadtest.corpus` with each request.
        wire: the server's format, of `loadtest.wires`.
    """

    workload: str
    seed: int = 0
    scale: float = 1.0
    rate: float = 10.0
    seconds: float = 10.0
    image: str = "tiny"
    metric: str = "vqascore"
    timeout_ms: int = 120_000
    questions: bool = False
    wire: str = "scoregate"


@dataclass(frozen=True, slots=True)
class Arrival:
    """
    One request: when it is due, its body and its lane.

    Attributes:
        more: bodies sent together with *body*, if the server takes the request in parts.
    """

    at_s: float
    items: int
    lane: str
    body: bytes
    more: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """
    Requests ordered by time; with *concurrency*, that many at a time and times are ignored.

    Attributes:
        background: number of bulk requests that are repeated concurrently until the others end.
    """

    arrivals: Sequence[Arrival]
    concurrency: int | None = None
    background: int = 0


class Maker:
    """Makes requests with distinct pictures."""

    def __init__(self, spec: Spec, folder: Path) -> None:
        self.spec, self.random, self._folder = spec, Random(f"{spec.workload}-{spec.seed}"), folder
        self.prompts = corpus.prompts(self.random)
        self._images: dict[str, Iterator[bytes]] = {}

    def image(self, kind: str) -> str:
        """Return the base64 of a new picture."""
        if kind not in self._images:
            self._images[kind] = corpus.distinct(kind, self.random, self._folder)
        return base64.b64encode(next(self._images[kind])).decode()

    def request(self, at_s: float, lane: str, kind: str, prompts: Sequence[str]) -> Arrival:
        """Return a request with one new picture for each of *prompts*."""
        body: dict[str, Any] = {
            "items": [{"prompt": prompt, "image": self.image(kind)} for prompt in prompts],
            "metrics": [self.spec.metric],
            "priority": lane,
            "timeout_ms": self.spec.timeout_ms,
        }
        if self.spec.questions:
            body["options"] = {self.spec.metric: {"question_set": corpus.QUESTION_SET}}
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


def poisson(maker: Maker) -> Plan:
    """Send single pictures at random times."""
    prompt = [next(maker.prompts)]
    return Plan([maker.request(at, "interactive", maker.spec.image, prompt) for at in maker.times()])


def saturated(maker: Maker) -> Plan:
    """Send single interactive pictures at random times, and every half second 128 bulk ones."""
    bulk = [next(maker.prompts)] * maker.scaled(128)
    steps = range(round(2 * maker.spec.seconds))
    arrivals = [maker.request(step / 2, "bulk", maker.spec.image, bulk) for step in steps]
    arrivals += poisson(maker).arrivals
    return Plan(sorted(arrivals, key=lambda arrival: arrival.at_s))


def under_bulk(maker: Maker) -> Plan:
    """Send single pictures one after the other, while 64 callers repeat single bulk pictures."""
    bulk = [maker.request(0.0, "bulk", maker.spec.image, [next(maker.prompts)]) for _ in range(256)]
    return replace(closed(maker, 1), arrivals=[*bulk, *closed(maker, 1).arrivals], background=64)


def closed(maker: Maker, concurrency: int) -> Plan:
    """Send `rate` times `seconds` single pictures, each when a previous one is answered."""
    prompt = [next(maker.prompts)]
    count = round(maker.spec.rate * maker.spec.seconds)
    arrivals = [maker.request(0.0, "interactive", maker.spec.image, prompt) for _ in range(count)]
    return Plan(arrivals, concurrency)


def rl_burst(maker: Maker, at_s: float = 0.0) -> Plan:
    """Send 512 single-image requests together, one prompt per 16 images, shuffled (verl-omni)."""
    groups = maker.shuffled(maker.scaled(512), 16, 1)
    return Plan([maker.request(at_s, "bulk", "rl", prompts) for prompts in groups])


def rl_group(maker: Maker) -> Plan:
    """Send 32 requests of 9 images, every prompt in 24 of them (flow_grpo)."""
    groups = maker.shuffled(9 * maker.scaled(32), 24, 9)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups])


def rl_large(maker: Maker) -> Plan:
    """Send 6 requests of 128 images together (UniRL)."""
    groups = maker.shuffled(6 * maker.scaled(128), 16, maker.scaled(128))
    return Plan([maker.request(0.0, "bulk", "rl-fine", prompts) for prompts in groups])


def offline(maker: Maker) -> Plan:
    """Send 7,200 images, 9 for each of 800 prompts, one a request, 64 at a time."""
    groups = maker.shuffled(maker.scaled(7200), 9, 1)
    return Plan([maker.request(0.0, "bulk", "rl", prompts) for prompts in groups], concurrency=64)


def whole(maker: Maker, at_once: int = 128, image: str = "rl") -> Plan:
    """Send 512 images in large requests together, as an offline run over a file does."""
    groups = maker.shuffled(maker.scaled(512), 16, at_once)
    return Plan([maker.request(0.0, "bulk", image, prompts) for prompts in groups])


def corrupt(maker: Maker, at_once: int) -> Plan:
    """Send 128 pictures in requests of *at_once*; the file of one in the middle is truncated."""
    groups = maker.shuffled(maker.scaled(128), 16, at_once)
    arrivals = [maker.request(0.0, "bulk", "rl", prompts) for prompts in groups]
    middle = len(arrivals) // 2
    body = orjson.loads(arrivals[middle].body)
    image = body["items"][0]["image"]
    body["items"][0]["image"] = image[: len(image) // 8 * 4]
    arrivals[middle] = replace(arrivals[middle], body=orjson.dumps(body))
    return Plan(arrivals)


def one_prompt(maker: Maker) -> Plan:
    """Send 24 pictures of one prompt in 24 concurrent requests."""
    prompt = [next(maker.prompts)]
    return Plan([maker.request(0.0, "bulk", "rl", prompt) for _ in range(24)])


def filtered(maker: Maker) -> Plan:
    """Online filter: Poisson, 1 image (80 %) or 4 of a new prompt; a fifth of the files are PNG."""
    return Plan([filter_request(maker, at) for at in maker.times()])


def filter_request(maker: Maker, at_s: float) -> Arrival:
    kind = maker.random.choices(("jpeg", "webp", "png"), (5, 3, 2))[0]
    images = maker.random.choices((1, 4), (8, 2))[0]
    return maker.request(at_s, "interactive", kind, [next(maker.prompts)] * images)


def rank(maker: Maker) -> Plan:
    """Best of N: one prompt with 3 to 9 images of 1024², Poisson."""
    sizes = ((at, maker.random.randint(3, 9)) for at in maker.times())
    return Plan([maker.request(at, "interactive", "jpeg", [next(maker.prompts)] * n) for at, n in sizes])


def mixed(maker: Maker) -> Plan:
    """Combine the filter with bursts of RL, one every five seconds."""
    arrivals = [filter_request(maker, at) for at in maker.times()]
    for start in range(0, round(maker.spec.seconds), 5):
        arrivals += rl_burst(maker, float(start)).arrivals
    return Plan(sorted(arrivals, key=lambda arrival: arrival.at_s))


# The names are those of docs/performance.md; the ones after `mixed` are for single figures.
WORKLOADS: dict[str, Callable[[Maker], Plan]] = {
    "rl-burst": rl_burst,
    "rl-group": rl_group,
    "rl-large": rl_large,
    "filter": filtered,
    "rank": rank,
    "offline": offline,
    "mixed": mixed,
    "whole": whole,
    "whole-64": lambda maker: whole(maker, 64),
    "whole-tiny": lambda maker: whole(maker, image="tiny"),
    "corrupt": lambda maker: corrupt(maker, 1),
    "corrupt-64": lambda maker: corrupt(maker, 64),
    "one-prompt": one_prompt,
    "poisson": poisson,
    "saturated": saturated,
    "one-by-one": lambda maker: closed(maker, 1),
    "sixteen-at-once": lambda maker: closed(maker, 16),
    "sixty-four-at-once": lambda maker: closed(maker, 64),
    "under-bulk": under_bulk,
}


def plan(spec: Spec, folder: Path = corpus.FOLDER) -> Plan:
    """Return the requests of *spec*."""
    return WORKLOADS[spec.workload](Maker(spec, folder))
