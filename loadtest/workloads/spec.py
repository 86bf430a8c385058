"""Specifications of workloads, and the lists of requests made from them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spec:
    """
    Name and size of a workload.

    Attributes:
        scale: of the bursts: 1 is the real size.
        rate: requests a second, for random arrivals.
        seconds: duration of arrivals.
        picture: kind of the corpus, for workloads that don't fix it.
        timeout_ms: of each request, also for the generator.
        questions: send the eight of `loadtest.workloads.questions` with each request.
        wire: the server's format, of `loadtest.generator.wires`.
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
