"""The origin of the scores of a file of `scoregate batch`: models, warnings, direction."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scoregate.cli.lines import Line, is_line
from scoregate.cli.parquet import line_of
from scoregate.cli.warned import Kind, kinds_of
from scoregate.records import records


@dataclass(frozen=True)
class Origin:
    """
    The origin of one metric's scores; empty for a file that `scoregate batch` did not write.

    Attributes:
        lower: True if lower scores are better.
        models: each set of models that gave scores.
    """

    lower: bool = False
    kinds: list[Kind] = field(default_factory=list)
    models: list[Mapping[str, str]] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Return a line for each kind of warning, and one if several sets of models gave the scores."""
        mixed = f"the scores are of {len(self.models)} sets of models, and not comparable"
        return [*map(str, self.kinds), *([mixed] if self.models[1:] else [])]


def origin(path: Path, metric: str) -> Origin:
    """Read the origin of *metric*'s scores from *path*."""
    models: dict[str, Mapping[str, str]] = {}
    lower = False
    for line in scored(path, metric):
        lower = lower or metric in line.get("lower_is_better", ())
        labels = line.get("models", {})
        models.setdefault(json.dumps(labels, sort_keys=True), labels)
    return Origin(lower, kinds_of(scored(path, metric)), list(models.values()))


def scored(path: Path, metric: str) -> Iterator[Line]:
    """Yield the lines with a score of *metric*; skip invalid ones."""
    for record in records(path):
        line = line_of(record.values)
        if is_line(line) and metric in line["scores"]:
            yield line
