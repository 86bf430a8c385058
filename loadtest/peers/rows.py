"""The rows of the table: workload, peers and figure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from loadtest.results import Outcome, latencies, percentile, throughput
from loadtest.workloads import Spec

Role = Literal["vqa", "clip"]
Figure = Literal["images/s", "p99 ms", "scored", "pairs/s"]


@dataclass(frozen=True, slots=True)
class Row:
    """
    One line of the table.

    Attributes:
        figure: the compared figure; of a p99, less is better.
    """

    name: str
    what: str
    role: Role
    spec: Spec
    peers: tuple[str, ...]
    figure: Figure = "images/s"

    @property
    def metric(self) -> str:
        """Our metric that makes the same model calls as the peer's request."""
        return self.spec.metric

    def scaled(self, scale: float) -> "Row":
        """Return the row with that share of its requests."""
        seconds = max(1.0, scale * self.spec.seconds)
        return replace(self, spec=replace(self.spec, scale=scale, seconds=seconds))

    def value(self, outcomes: Sequence[Outcome]) -> float:
        """Return the figure of one run."""
        if self.figure == "scored":
            return sum(outcome.scored for outcome in outcomes)
        if self.figure == "p99 ms":
            return 1000 * percentile(latencies(outcomes, "interactive"), 0.99)
        return throughput(outcomes)


VQA = Spec("rl-burst", picture="rl")
CLIP = replace(VQA, metric="clipscore")
EIGHT = replace(VQA, metric="dsg", questions=True, rate=1)
BATCHING = ("litserve", "mosec")
EVERY = (*BATCHING, "flask")

ROWS = {
    row.name: row
    for row in (
        Row("burst", "512 single requests at once", "vqa", VQA, (*EVERY, "fastapi")),
        Row("4x128", "4 requests of 128 at once", "vqa", replace(VQA, workload="whole"), ("flask",)),
        Row("8x64", "8 requests of 64 at once", "vqa", replace(VQA, workload="whole-64"), ("flask",)),
        Row(
            "questions-1",
            "8 questions on a picture, one at a time",
            "vqa",
            replace(EIGHT, workload="one-by-one", seconds=32),
            (*EVERY, "fastapi"),
        ),
        Row(
            "questions-16",
            "the same, 16 at once",
            "vqa",
            replace(EIGHT, workload="sixteen-at-once", seconds=128),
            EVERY,
        ),
        Row(
            "clip-1",
            "CLIP, one pair, 1 caller",
            "clip",
            replace(CLIP, workload="one-by-one", rate=1, seconds=64),
            (*BATCHING, "infinity"),
        ),
        Row(
            "clip-16",
            "CLIP, one pair, 16 callers",
            "clip",
            replace(CLIP, workload="sixteen-at-once", rate=1, seconds=256),
            (*BATCHING, "infinity"),
        ),
        Row(
            "clip-64",
            "CLIP, one pair, 64 callers",
            "clip",
            replace(CLIP, workload="sixty-four-at-once", rate=1, seconds=512),
            (*BATCHING, "infinity"),
        ),
        Row(
            "clip-8x64",
            "CLIP, 8 requests of 64 at once",
            "clip",
            replace(CLIP, workload="whole-64"),
            (*EVERY, "infinity"),
        ),
        Row(
            "under-bulk",
            "one caller of single pairs beside 64 of bulk, p99",
            "vqa",
            replace(VQA, workload="under-bulk", rate=1, seconds=24),
            EVERY,
            "p99 ms",
        ),
        Row(
            "corrupt",
            "one corrupt picture in 128: others scored",
            "vqa",
            replace(VQA, workload="corrupt"),
            BATCHING,
            "scored",
        ),
        Row(
            "corrupt-64",
            "the same in requests of 64",
            "vqa",
            replace(VQA, workload="corrupt-64"),
            ("flask",),
            "scored",
        ),
    )
}
