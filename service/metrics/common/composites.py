"""Composites: weighted sums of metrics, defined in a profile."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from typing_extensions import TypedDict

from service.core.errors import ScoregateError
from service.core.fields import first_fault
from service.core.settings import SettingsError
from service.core.settings.tree import PartSettings, Settings
from service.metrics.common.contract import NAME, Item, Metric, MetricOptions, Score, TogetherOptions
from service.metrics.common.model_calls import ModelCalls
from service.metrics.common.registry import Assignment
from service.serving.context import WORST_FIRST

PartsByMetric = Mapping[str, "CompositePart"]


@dataclass(frozen=True, slots=True)
class CompositePart:
    """One metric of a composite with its options and its weight."""

    metric: Metric
    options: MetricOptions
    weight: float
    divide_by: float
    subtract: float = 0

    def contribution(self, score: float) -> float:
        """Return weight · (*score* - subtract) / divide_by."""
        return self.weight * (score - self.subtract) / self.divide_by

    @property
    def lower_is_better(self) -> bool:
        """True if smaller contributions are better; a negative factor reverses the direction."""
        return self.metric.lower_is_better and self.weight / self.divide_by > 0

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest contribution."""
        least, largest = sorted(map(self.contribution, self.metric.range_of(self.options)))
        return least, largest

    @property
    def formula(self) -> str:
        """The contribution as a formula: "0.4·name(scale=logit)/26", "0.5·(name - 1)/4"."""
        given = self.options.model_dump(exclude_defaults=True)
        arguments = f"({', '.join(f'{name}={value}' for name, value in given.items())})" if given else ""
        divided = f"/{self.divide_by:g}" if self.divide_by != 1 else ""
        score = f"{self.metric.name}{arguments}"
        if self.subtract:
            score = f"({score} {'-' if self.subtract > 0 else '+'} {abs(self.subtract):g})"
        return f"{self.weight:g}·{score}{divided}"


@dataclass(frozen=True, slots=True)
class Composite(Metric):
    """
    A metric that is the weighted sum of others.

    Attributes:
        parts: by the name of the metric.
        lacks: the reason for each part that is not ready.
    """

    parts: PartsByMetric = field(kw_only=True)
    lacks: tuple[str, ...] = field(kw_only=True)

    @property
    def computes(self) -> bool:
        """False: it only waits for its parts."""
        return False

    def asks(self, options: MetricOptions) -> Mapping[str, MetricOptions]:
        """Return its parts with their options from the profile, which requests cannot change."""
        return {name: part.options for name, part in self.parts.items()}


class PartDetails(TypedDict):
    """
    The contribution of one part.

    Attributes:
        contribution: weight * (score - subtract) / divide_by.
        details: of the part's own score.
    """

    score: float
    weight: float
    subtract: float
    divide_by: float
    contribution: float
    details: Mapping[str, Any]


class CompositeDetails(TypedDict):
    """Details of a composite: its parts, by metric."""

    parts: dict[str, PartDetails]


def composites(
    metrics: Mapping[str, Metric], settings: Settings, assigned: Assignment
) -> dict[str, Composite]:
    """
    Return the composites of a profile, by name.

    Args:
        metrics: that may be parts.
        assigned: the model of each role of each metric.

    Raises:
        SettingsError: a name is taken or invalid, or a part cannot be used.
    """
    made = {}
    for name, tables in settings.composites.items():
        place = f"composites.{name}"
        if name in metrics:
            raise SettingsError(f"{place}: there is a metric of that name")
        if not NAME.fullmatch(name):
            raise SettingsError(f"{place}: a name must match {NAME.pattern}")
        if not tables:
            raise SettingsError(f"{place}: the table is empty; name a metric in it, or remove it")
        parts = {}
        for part, table in tables.items():
            if part in settings.composites:
                raise SettingsError(f"{place}.{part}: is a composite itself; only metrics can be parts")
            if part not in metrics:
                raise SettingsError(
                    f"{place}.{part}: there is no such metric; there are {', '.join(metrics)}"
                )
            parts[part] = part_of(f"{place}.{part}", metrics[part], table, assigned)
        if len({part.options.whole for part in parts.values()}) > 1:
            raise SettingsError(f"{place}: some parts score each frame, and others all frames together")
        lacks = (lack(f"{place}.{part}", parts[part], assigned) for part in parts)
        made[name] = composite(name, parts, tuple(filter(None, lacks)))
    return made


def part_of(place: str, metric: Metric, table: PartSettings, assigned: Assignment) -> CompositePart:
    """Return a part of a composite.  Raises `SettingsError` for wrong options or a missing model."""
    if missing := [role for role in metric.roles if (metric.name, role) not in assigned]:
        reason = f"no model is configured for its role {missing[0]}"
        raise SettingsError(f"{place}: {reason}; metrics.{metric.name} can name one")
    for name in MetricOptions.model_fields:
        if name in table.options:
            raise SettingsError(f"{place}.{name}: is an option of the composite, not of its parts")
    try:
        options = metric.options.model_validate(table.options)
    except ValidationError as exc:
        raise SettingsError(first_fault(exc, place)) from exc
    return CompositePart(metric, options, table.weight, table.divide_by, table.subtract)


def lack(place: str, part: CompositePart, assigned: Assignment) -> str:
    """Return why a part is not ready, or an empty string.  Requests cannot bring question sets for parts."""
    metric = part.metric
    needed = "questions" in metric.may_use and getattr(part.options, "question_set", None) is None
    if not needed or (metric.name, "questions") in assigned:
        return ""
    return (
        f"{place}: no model is configured for the role questions, and the part has no question_set: only"
        " prompts whose question sets were imported can be scored"
    )


def composite(name: str, parts: PartsByMetric, lacks: tuple[str, ...]) -> Composite:
    """Return the metric that adds up *parts*."""
    metrics = [part.metric for part in parts.values()]
    roles = dict.fromkeys(role for metric in metrics for role in metric.roles)
    may_use = dict.fromkeys(role for metric in metrics for role in metric.may_use if role not in roles)
    ranges = [part.range for part in parts.values()]
    lower = all(part.lower_is_better for part in parts.values())
    uses = (name for part in parts.values() for name in part.metric.uses_of(part.options))

    async def score(item: Item, models: ModelCalls, options: MetricOptions) -> Score:
        """Return the sum of the contributions.  Raises the error of the first part that failed."""
        return total(parts, await models.score(item, {name: part.options for name, part in parts.items()}))

    together = all(part.options.whole for part in parts.values())
    return Composite(
        name,
        score,
        options=TogetherOptions if together else MetricOptions,
        details=CompositeDetails,
        roles=tuple(roles),
        may_use=tuple(may_use),
        uses=tuple(dict.fromkeys(uses)),
        range=(math.fsum(least for least, _ in ranges), math.fsum(largest for _, largest in ranges)),
        formula=" + ".join(part.formula for part in parts.values()),
        direction="lower is better" if lower else "higher is better",
        needs=" and ".join(metric.needs for metric in metrics if metric.needs),
        reads_prompt=any(metric.reads_prompt for metric in metrics),
        parts=parts,
        lacks=lacks,
    )


def total(parts: PartsByMetric, results: Mapping[str, Score | ScoregateError]) -> Score:
    """Add up the parts' scores.  Raises the error of the first part that failed, which names the part."""
    details: dict[str, PartDetails] = {}
    statuses, notes, errors = set(), [], []
    for name, score in results.items():
        if isinstance(score, ScoregateError):
            raise score.of_part(name)
        part = parts[name]
        details[name] = {
            "score": score.value,
            "weight": part.weight,
            "subtract": part.subtract,
            "divide_by": part.divide_by,
            "contribution": part.contribution(score.value),
            "details": score.details,
        }
        statuses.add(score.cache)
        errors.append(score.error * part.weight / part.divide_by)
        notes += [note.of_part(name) for note in score.notes]
    value = math.fsum(part["contribution"] for part in details.values())
    cache = next((status for status in WORST_FIRST if status in statuses), None)
    error = math.hypot(*errors)
    return Score(value, {"parts": details}, cache, tuple(notes), error)
