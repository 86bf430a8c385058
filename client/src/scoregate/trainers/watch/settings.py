"""The settings of a watch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scoregate.items import names_of
from scoregate.trainers.watch.divergence import Divergence


@dataclass(frozen=True)
class Watch:
    """
    What watches a reward.

    Attributes:
        metrics: that score the sample.
        share: of the pictures, and of the prompts whose pictures are compared with each other.
        seed: of the sample, which is the same for the same order of pictures.
        alarms: the share of clean runs of 1,000 steps that have a false alarm, at most, if the noise of step
            means is stationary.  It is divided by the number of metrics.
        every: pictures of a step.  By default a step ends at `Reward.statistics`.  With *every* it ends by
            itself, and its figures are a line of the logger `scoregate.watch`.
        options: by metric.
        timeout_s: of the scores of one picture.

    Raises:
        ValueError: *metrics* are none or named twice, a number is outside its range, or *alarms* is too low
            for so many metrics.
    """

    metrics: Sequence[str] | str
    share: float = 0.1
    seed: int = 0
    alarms: float = 0.05
    every: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    timeout_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.names or len(set(self.names)) < len(self.names):
            raise ValueError(f"a watch has at least one metric, and none twice: {', '.join(self.names)}")
        if not 0 < self.share <= 1:
            raise ValueError(f"the share of a watch is above 0 and at most 1, not {self.share}")
        if self.every is not None and self.every < 1:
            raise ValueError(f"a step has at least one picture, not {self.every}")
        self.tests()

    @classmethod
    def of(cls, given: Watch | Mapping[str, Any] | Sequence[str] | str) -> Watch:
        """Return a watch; *given* may also be its metrics, or its attributes by name."""
        if isinstance(given, Watch):
            return given
        return cls(**given) if isinstance(given, Mapping) else cls(tuple(names_of(given)))

    @property
    def names(self) -> list[str]:
        """The metrics."""
        return names_of(self.metrics)

    def tests(self) -> dict[str, Divergence]:
        """Return a new test for each metric."""
        return {metric: Divergence(self.alarms / len(self.names)) for metric in self.names}
