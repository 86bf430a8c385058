"""The data of a page: the scored rows of a data set, and the runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np

from scoregate.evaluation.arrays import Floats, exact
from scoregate.results import Notice

EMPTY_CELL = "(empty)"  # stands for a cell without a name

Details = Mapping[str, Any]  # the parts of a row's scores, by metric


@dataclass(frozen=True)
class ReportRow:
    """
    One picture.

    Attributes:
        errors: code and detail for each metric without a score.
        human: people's rating, NaN if missing.
        skill: the groups that it counts in.
        item: what generators share, the prompt unless a column is named.
        parts: scores of a metric's own parts, such as skills; by metric and part.
        models: `id@revision` of the models that gave the scores, by configured name.
        warnings: of the service.
    """

    number: int
    image: str = ""
    prompt: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    human: float = nan
    model: str | None = None
    item: str | None = None
    skill: Sequence[str] = ()
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[Notice] = ()


@dataclass(frozen=True)
class Columns:
    """The names of the data set's columns; None if not given."""

    human: str | None = None
    model: str | None = None
    item: str | None = None
    skill: str | None = None


@dataclass(frozen=True)
class Cost:
    """
    The cost of scoring, over all logged runs.

    Attributes:
        asked: pictures that were sent.
        cached: those of them with all scores from the cache.
        seconds: of wall time.
    """

    runs: int = 0
    asked: int = 0
    cached: int = 0
    seconds: float = 0.0
    price_per_hour: float | None = None


@dataclass(frozen=True)
class ScoredRow:
    """
    A scored data set.

    Attributes:
        models: `id@revision` by configured name, if no row names those that scored it.
        lower: metrics whose lower scores are the better ones.
        version: the service's; empty if unknown.
        drawn: the date of the page.
        details_of: the details of some rows, by number.
        picture_of: the pictures of some rows as addresses, by number; empty if not readable.
    """

    name: str
    drawn: str
    rows: Sequence[ReportRow]
    metrics: Sequence[str]
    details_of: Callable[[set[int]], Mapping[int, Details]]
    images_of: Callable[[set[int]], Mapping[int, str]]
    columns: Columns = Columns()
    models: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    lower: frozenset[str] = frozenset()
    version: str = ""
    out_of_scale: int = 0
    cost: Cost = Cost()

    def with_score(self, metric: str) -> list[ReportRow]:
        """Return the rows with a score of *metric*."""
        return [row for row in self.rows if metric in row.scores]

    def rated(self, metric: str) -> list[ReportRow]:
        """Return the rows with a score of *metric* and a rating."""
        return [row for row in self.with_score(metric) if row.human == row.human]

    def worth(self, metric: str, rows: Sequence[ReportRow]) -> Floats:
        """Return the scores of *rows*, negated if lower ones are better."""
        sign = -1.0 if metric in self.lower else 1.0
        whole, scale = exact(np.array([row.scores[metric] for row in rows], dtype=np.float64))
        return sign * whole / scale
