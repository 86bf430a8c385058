"""Provenance in responses: what scores were computed with."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.core.contract import ARITHMETIC, ModelInfo
from service import __version__
from service.core.fields import Orient
from service.metrics.common.composites import Composite
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.observability.build import commit, libraries
from service.scoring.report import Report
from service.web.wire.provenance import PartEntry, Preprocessing, Provenance, ServiceBuild, UsedModel


def provenance_of(
    report: Report, options: Mapping[str, MetricOptions], metrics: Mapping[str, Metric], orient: Orient
) -> Provenance:
    """
    Return what the scores of a request were computed with.

    Args:
        options: of the metrics of the request.
        metrics: declarations by name.
    """
    content: Provenance = {
        "service": build(),
        "models": {name: used(info) for name, info in report.infos.items()},
        "options": shown(options),
        "preprocessing": preprocessing(orient),
        "libraries": libraries(),
    }
    composites = {name: parts_of(metrics[name]) for name in options}
    if found := {name: parts for name, parts in composites.items() if parts}:
        content["composites"] = found
    return content


def parts_of(metric: Metric) -> dict[str, PartEntry]:
    """Return the parts of a composite, with the options that differ from their defaults; else nothing."""
    if not isinstance(metric, Composite):
        return {}
    return {
        name: {
            "weight": part.weight,
            "subtract": part.subtract,
            "divide_by": part.divide_by,
            "options": part.options.model_dump(mode="json", exclude_defaults=True),
        }
        for name, part in metric.parts.items()
    }


def build() -> ServiceBuild:
    """Return the service's version, and its commit if known."""
    content: ServiceBuild = {"version": __version__}
    if known := commit():
        content["commit"] = known
    return content


def preprocessing(orient: Orient) -> Preprocessing:
    """Return how pictures become pixels: *orient*, and the version of our arithmetic."""
    return {"arithmetic": ARITHMETIC, "orient": orient}


def used(info: ModelInfo) -> UsedModel:
    """Return the recipe, the dtype and the device of a model."""
    content: UsedModel = {"recipe": info.recipe, "dtype": info.dtype, "device": info.device}
    if info.hardware:
        content["hardware"] = info.hardware
    return content


def shown(options: Mapping[str, MetricOptions]) -> dict[str, dict[str, Any]]:
    """Return options with their defaults, by metric; question sets are shown by their ids instead."""
    return {
        name: given.model_dump(mode="json", exclude_none=True, exclude={"question_set"})
        for name, given in options.items()
    }


def question_sets(scores: Mapping[str, Score]) -> dict[str, str]:
    """Return the ids of the question sets of an item by metric; a composite's part is `NAME.PART`."""
    return {place: id for name, score in scores.items() for place, id in sets_in(name, score.details)}


def sets_in(place: str, details: Any) -> Iterator[tuple[str, str]]:
    """Yield the ids in a score's details, each with its place; frames and grids use one set."""
    if not isinstance(details, Mapping):
        return
    if isinstance(id := details.get("question_set"), str):
        yield place, id
    elif isinstance(parts := details.get("parts"), Mapping):
        for name, part in parts.items():
            if isinstance(part, Mapping):
                yield from sets_in(f"{place}.{name}", part.get("details"))
    else:
        frames = details.get("frames")
        first = frames[0] if isinstance(frames, list) and frames else details.get("grid")
        yield from sets_in(place, first)
