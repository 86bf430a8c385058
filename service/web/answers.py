"""Parts of responses that are built from a report: provenance, ids of question sets, and warnings."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from models.core.contract import ARITHMETIC, ModelInfo
from service import __version__
from service.core.fields import Orient
from service.metrics.common.composites import Composite
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.observability.build import commit, libraries
from service.scoring.report import Report, Warned
from service.web.wire.responses import (
    PartEntry,
    Preprocessing,
    Provenance,
    ServiceBuild,
    UsedModel,
    WarningCode,
    Warnings,
)


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
    composites = {
        name: parts_of(metric) for name in options if isinstance(metric := metrics[name], Composite)
    }
    if composites:
        content["composites"] = composites
    return content


def parts_of(metric: Composite) -> dict[str, PartEntry]:
    """Return the parts of a composite, with the options that differ from their defaults."""
    return {
        name: {
            "weight": part.weight,
            "subtract": part.subtract,
            "divide_by": part.divide_by,
            "options": part.options.model_dump(mode="json", exclude_defaults=True),
        }
        for name, part in metric.parts.items()
    }


@cache
def build() -> ServiceBuild:
    """Return the service's version, and its commit if known."""
    content: ServiceBuild = {"version": __version__}
    if known := commit():
        content["commit"] = known
    return content


@cache
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


def warnings_of(warned: Sequence[Warned]) -> Warnings:
    """Return two fields of a response, with the same length; none without warnings."""
    if not warned:
        return {}
    codes: list[WarningCode] = []
    for each in warned:
        codes.append({"code": each.note.code})
        if each.item is not None:
            codes[-1]["item"] = each.item
        if each.metric is not None:
            codes[-1]["metric"] = each.metric
        if each.note.share is not None:
            codes[-1]["share"] = each.note.share
    return {"warnings": [each.sentence for each in warned], "warning_codes": codes}
