"""The rows of the table, with workload, peers and figure, and the results of their rounds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from statistics import median
from typing import Literal

from loadtest.results import Outcome, latencies, percentile, throughput
from loadtest.workloads import Spec

Role = Literal["vqa", "clip"]
Figure = Literal["images/s", "p99 ms", "scored"]


@dataclass(frozen=True, slots=True)
class Row:
    """
    One line of the table.

    Attributes:
        spec: its metric makes the same model calls as the peer's request.
        figure: the compared figure; of a p99, less is better.
    """

    name: str
    what: str
    spec: Spec
    peers: tuple[str, ...]
    figure: Figure = "images/s"

    @property
    def role(self) -> Role:
        """The role of the only model that the row needs."""
        return "clip" if self.spec.metric == "clipscore" else "vqa"

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


def vqa(workload: str, requests: int = 0) -> Spec:
    """Return a workload of pictures and prompts, with that many requests if it does not fix them."""
    return Spec(workload, image="rl", rate=1, seconds=requests)


def clip(workload: str, requests: int = 0) -> Spec:
    """Return a workload of `vqa` for CLIP."""
    return replace(vqa(workload, requests), metric="clipscore")


def eight(workload: str, requests: int) -> Spec:
    """Return a workload of eight questions about each picture."""
    return replace(vqa(workload, requests), metric="dsg", questions=True)


BATCHING = ("litserve", "mosec")
THREE = (*BATCHING, "flask")
FOUR = (*THREE, "fastapi")
WITH_CLIP = (*BATCHING, "infinity")
UNDER_BULK = "one caller of single pairs beside 64 of bulk, p99"

ROWS = {
    row.name: row
    for row in (
        Row("burst", "512 single requests at once", vqa("rl-burst"), FOUR),
        Row("4x128", "4 requests of 128 at once", vqa("whole"), ("flask",)),
        Row("8x64", "8 requests of 64 at once", vqa("whole-64"), ("flask",)),
        Row("questions-1", "8 questions on a picture, one at a time", eight("one-by-one", 32), FOUR),
        Row("questions-16", "the same, 16 at once", eight("sixteen-at-once", 128), THREE),
        Row("clip-1", "CLIP, one pair, 1 caller", clip("one-by-one", 64), WITH_CLIP),
        Row("clip-16", "CLIP, one pair, 16 callers", clip("sixteen-at-once", 256), WITH_CLIP),
        Row("clip-64", "CLIP, one pair, 64 callers", clip("sixty-four-at-once", 512), WITH_CLIP),
        Row("clip-8x64", "CLIP, 8 requests of 64 at once", clip("whole-64"), (*THREE, "infinity")),
        Row("under-bulk", UNDER_BULK, vqa("under-bulk", 24), THREE, "p99 ms"),
        Row("corrupt", "one corrupt picture in 128: others scored", vqa("corrupt"), BATCHING, "scored"),
        Row("corrupt-64", "the same in requests of 64", vqa("corrupt-64"), ("flask",), "scored"),
    )
}


@dataclass(frozen=True, slots=True)
class LoopRow:
    """
    A comparison with a loop.

    Attributes:
        way: of `loadtest.loops`.
        questions: about each picture; 1 is the prompt itself.
    """

    name: str
    what: str
    way: str
    questions: int


LOOPS = {
    row.name: row
    for row in (
        LoopRow("loop-8-reference", "8 questions, over t2v_metrics' loop", "reference", 8),
        LoopRow("loop-8-calls", "8 questions, over a loop of single calls", "calls", 8),
        LoopRow("loop-1-reference", "one pair, over t2v_metrics in process", "reference", 1),
    )
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its figure, its latencies, and the number of failed requests."""

    value: float
    p50_ms: float
    p99_ms: float
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """All rounds of a row against one peer."""

    row: str
    peer: str
    version: str
    ours: list[Run]
    theirs: list[Run]

    def ratios_of(self, figure: str) -> list[float]:
        """Return ours over theirs of a field of `Run`, for the rounds in which the peer has it."""
        ours, theirs = ([getattr(run, figure) for run in runs] for runs in (self.ours, self.theirs))
        return [our / their for our, their in zip(ours, theirs, strict=True) if 0 < their < inf]

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, of the rounds in which the peer has a figure."""
        return self.ratios_of("value")

    @property
    def ratio(self) -> float:
        """Median ratio; NaN if the peer never has a figure."""
        return median(self.ratios or [nan])

    @property
    def unanswered(self) -> int:
        """Number of rounds in which the peer has no figure."""
        return len(self.theirs) - len(self.ratios)


def merged(runs: Sequence[Run]) -> Run:
    """Return the median of each figure, and the sum of failures."""
    return Run(
        median(run.value for run in runs),
        median(run.p50_ms for run in runs),
        median(run.p99_ms for run in runs),
        sum(run.failed for run in runs),
    )
