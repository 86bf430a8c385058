"""The log of runs of `scoregate report`, next to its results: durations and counts."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scoregate
from scoregate.direction import lower_among


@dataclass
class Run:
    """
    One run.

    Attributes:
        asked: scored pictures; *cached* is the number of them without a model call.
        seconds: of wall time.
        version: the service's; empty if unknown.
        lower: metrics whose lower scores are better.
    """

    asked: int = 0
    cached: int = 0
    seconds: float = 0.0
    version: str = ""
    lower: tuple[str, ...] = ()

    def answered(self, result: scoregate.Result) -> None:
        """Count a result."""
        self.asked += 1
        self.cached += bool(result.scores) and all(
            result.cache.get(metric) == "hit" for metric in result.scores
        )


def log_of(results: Path) -> Path:
    """Return the log's path."""
    return results.with_name(f"{results.name}.runs")


@contextmanager
def noted(
    results: Path, version: str, metrics: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
) -> Iterator[Run]:
    """Yield a run; log it when the block ends, also by an exception."""
    run, begun = Run(version=version, lower=tuple(lower_among(metrics))), clock()
    try:
        yield run
    finally:
        run.seconds = clock() - begun
        with log_of(results).open("a", encoding="utf-8") as file:
            file.write(json.dumps(vars(run)) + "\n")


def runs(results: Path) -> list[Run]:
    """Return the logged runs; skip invalid lines."""
    try:
        lines = log_of(results).read_text("utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return []
    return [run for line in lines if (run := read(line))]


def read(line: str) -> Run | None:
    """Parse a line; return None if it is not valid."""
    try:
        run = json.loads(line)
        counts = int(run["asked"]), int(run["cached"]), float(run["seconds"])
        return Run(*counts, str(run["version"]), tuple(map(str, run["lower"])))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
