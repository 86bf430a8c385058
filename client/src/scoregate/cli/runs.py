"""What is noted of each run of `scoregate report`, beside its results: how long it took, and who answered."""

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
        asked: pictures that were answered, *cached* those of them that needed no model.
        seconds: of wall time.
        version: the service's; empty if unknown.
        lower: metrics whose lower scores are the better ones.
    """

    asked: int = 0
    cached: int = 0
    seconds: float = 0.0
    version: str = ""
    lower: tuple[str, ...] = ()

    def answered(self, result: scoregate.Result) -> None:
        """Count an answer."""
        self.asked += 1
        self.cached += bool(result.scores) and all(
            result.cache.get(metric) == "hit" for metric in result.scores
        )


def beside(results: Path) -> Path:
    """Return the file of the runs that wrote *results*."""
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
        with beside(results).open("a", encoding="utf-8") as file:
            file.write(json.dumps(vars(run)) + "\n")


def runs(results: Path) -> list[Run]:
    """Return the logged runs; skip invalid lines."""
    try:
        lines = beside(results).read_text("utf-8").splitlines()
    except (FileNotFoundError, UnicodeDecodeError):
        return []
    return [run for line in lines if (run := read(line))]


def read(line: str) -> Run | None:
    """Parse a line; return None if it is not valid."""
    try:
        told = json.loads(line)
        counts = int(told["asked"]), int(told["cached"]), float(told["seconds"])
        return Run(*counts, str(told["version"]), tuple(map(str, told["lower"])))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
