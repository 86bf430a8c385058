"""Arrivals: read from a CSV file, or generated like those of trainers and filters."""

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from loadtest.workloads.spec import Arrival
from service.core.lanes import BULK, INTERACTIVE, LANES

COLUMNS = ("time", "images", "questions", "lane")
BURST = 512  # single-image requests, as in loadtest/workloads
EVERY_S = 5.0
RATE = 10.0  # requests a second


@dataclass(frozen=True, slots=True)
class Request:
    """A request's arrival in seconds, and its content: each question is a call for each image."""

    at_s: float
    images: int
    questions: int
    lane: str

    @property
    def calls(self) -> int:
        """Number of its calls."""
        return self.images * self.questions


def read(file: Path) -> list[Request]:
    """Read the requests of a CSV file, ordered by time.  Raises `ValueError`, naming the line."""
    with file.open(newline="") as lines:
        rows = csv.DictReader(lines)
        if missing := [name for name in COLUMNS if name not in (rows.fieldnames or ())]:
            raise ValueError(f"{file}: no column {', '.join(missing)}; needed: {','.join(COLUMNS)}")
        requests = []
        for row in rows:
            try:
                requests.append(parsed(row))
            except (ValueError, TypeError) as exc:
                raise ValueError(f"{file}, line {rows.line_num}: {exc}") from exc
    if not requests:
        raise ValueError(f"{file}: no request")
    return sorted(requests, key=lambda request: request.at_s)


def requests_of(arrivals: Sequence[Arrival]) -> list[Request]:
    """Convert a workload: one question for each image."""
    return [Request(arrival.at_s, arrival.items, 1, arrival.lane) for arrival in arrivals]


def parsed(row: dict[str, str]) -> Request:
    """Parse one line.  Raises `ValueError` or `TypeError`."""
    request = Request(float(row["time"]), int(row["images"]), int(row["questions"]), row["lane"])
    if not (0 <= request.at_s < float("inf") and request.images > 0 and request.questions > 0):
        raise ValueError("time must be 0 or more, images and questions 1 or more")
    if request.lane not in LANES:
        raise ValueError(f"lane must be {' or '.join(LANES)}")
    return request


def bursts(random: Random, seconds: float, scale: float, questions: int) -> Iterator[Request]:
    """Generate a trainer's requests: 512 of one image together, every five seconds."""
    for step in range(max(1, round(seconds / EVERY_S))):
        for _ in range(max(1, round(BURST * scale))):
            yield Request(step * EVERY_S, 1, questions, BULK)


def filtered(random: Random, seconds: float, scale: float, questions: int) -> Iterator[Request]:
    """Generate a filter's requests: ten a second at random times, of one image (80 %) or four."""
    at = random.expovariate(RATE * scale)
    while at < seconds:
        yield Request(at, random.choices((1, 4), (8, 2))[0], questions, INTERACTIVE)
        at += random.expovariate(RATE * scale)


def mixed(random: Random, seconds: float, scale: float, questions: int) -> Iterator[Request]:
    """Generate both kinds."""
    yield from filtered(random, seconds, scale, questions)
    yield from bursts(random, seconds, scale, questions)


TRACES: dict[str, Callable[[Random, float, float, int], Iterator[Request]]] = {
    "rl-burst": bursts,
    "filter": filtered,
    "mixed": mixed,
}


def made(name: str, seconds: float, scale: float, questions: int, seed: int = 0) -> list[Request]:
    """Return the requests of a named trace, ordered by time; deterministic."""
    requests = TRACES[name](Random(f"{name}-{seed}"), seconds, scale, questions)
    return sorted(requests, key=lambda request: request.at_s)


def calls_a_second(requests: Sequence[Request]) -> float:
    """Return the long-term rate of calls; 0 if all arrive together, which gives no rate."""
    times = sorted({request.at_s for request in requests})
    if len(times) < 2:
        return 0.0
    span_s = (
        (times[-1] - times[0]) * len(times) / (len(times) - 1)
    )  # including the time until the next arrival
    return sum(request.calls for request in requests) / span_s
