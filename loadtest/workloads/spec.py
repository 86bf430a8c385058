"""Which workload, and what it comes to: a list of requests."""

from collections.abc import Sequence
from dataclasses import dataclass


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
        questions: whether the eight of `loadtest.workloads.questions` come with each request.
        wire: of `loadtest.generator.wires`: the format of the server that is asked.
    """

    workload: str
    seed: int = 0
    scale: float = 1.0
    rate: float = 10.0
    seconds: float = 10.0
    picture: str = "tiny"
    metric: str = "vqascore"
    timeout_ms: int = 120_000
    questions: bool = False
    wire: str = "scoregate"


@dataclass(frozen=True, slots=True)
class Arrival:
    """
    One request: when it is due, what it holds, and the lane it goes to.

    Attributes:
        more: bodies sent together with *body*, where a server takes the request in parts.
    """

    at_s: float
    items: int
    lane: str
    body: bytes
    more: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """
    Requests in order of time; with *concurrency*, as many at once and times mean nothing.

    Attributes:
        background: then so many of the lane `bulk` are always on their way, again and again, for as long
            as the others last.
    """

    arrivals: Sequence[Arrival]
    concurrency: int | None = None
    background: int = 0
