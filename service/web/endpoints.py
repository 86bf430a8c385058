"""What endpoints share: the service, the context of a request, parts of responses from a report, and JSON."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import orjson
from fastapi import Request, Response

from models.core.contract import ARITHMETIC, ModelInfo
from service import __version__
from service.core.errors import Fault, Forbidden, Invalid
from service.core.fields import Orient
from service.core.settings.sections import MAX_TIMEOUT_MS
from service.metrics.common.composites import Composite
from service.metrics.common.contract import Metric, MetricOptions, Score
from service.observability.build import commit, libraries
from service.scoring.report import Report, Warned
from service.serving.context import Account, Context, RequestRecord, free
from service.web.keys import ANYONE
from service.web.wire.responses import (
    PartEntry,
    Preprocessing,
    Provenance,
    ServiceBuild,
    UsedModel,
    WarningCode,
    Warnings,
)
from service.web.wire.types import Requests
from service.wiring.bootstrap import Service

TIMEOUT_HEADER = "x-request-timeout-ms"

SERVER_TIMING = "Server-Timing"
ON, OFF = ("1", "true"), ("0", "false")


def service_of(request: Request) -> Service:
    """Return the service of this app."""
    service: Service = request.app.state.service
    return service


def requests_of(request: Request) -> Requests:
    """Return the request types of this app."""
    requests: Requests = request.app.state.requests
    return requests


def timing_header(timings_ms: Mapping[str, float]) -> dict[str, str]:
    """Build the header that shows the stages of a request in browsers."""
    return {SERVER_TIMING: ", ".join(f"{stage};dur={ms}" for stage, ms in timings_ms.items())}


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Write JSON without validation."""
    return Response(
        # Details of another package's metric may hold any type.
        orjson.dumps(content, default=str, option=orjson.OPT_SERIALIZE_NUMPY),
        status,
        headers,
        "application/json",
    )


def context_of(service: Service, request: Request, timeout_ms: int | None, lane: str | None) -> Context:
    """
    Build the context of a request.  Its timeout counts from the request's first byte.

    It is stored in the request's state, for the access log and the Prometheus metrics.

    Args:
        lane: the requested lane; None for the first that the key may use.

    Raises:
        Invalid: the timeout in a header is not valid.
        Forbidden: the key may not use the lane.
    """
    state = request.state
    key = getattr(state, "caller", ANYONE)
    account, in_header = Account(key.name or None, charge_of(request)), header_timeout(request)
    timeout_ms = timeout_ms or in_header or service.settings.server.default_timeout_ms
    context = Context(
        state.request_id,
        0.0,
        key.lane(lane),
        service.instruments,
        state.span,
        account,
        request=RequestRecord(began=state.began),
    )
    receiving_s = context.elapsed()
    context.deadline = asyncio.get_running_loop().time() + timeout_ms / 1000 - receiving_s
    context.spent("receive", receiving_s)
    state.context = context
    return context


def charge_of(request: Request) -> Callable[[int], None]:
    """Return the function that charges the key for pairs of an item and a metric."""
    key = getattr(request.state, "caller", ANYONE)
    return partial(request.app.state.quotas.charge, key) if key.quota else free


def check_operator(request: Request) -> None:
    """Raise `Forbidden` unless the request came to the operator's port, or its key may change models."""
    key = getattr(request.state, "caller", ANYONE)
    if not (key.models or getattr(request.app.state, "operators", False)):
        raise Forbidden("this needs server.metrics_port, or a key with the right models")


def header_timeout(request: Request) -> int | None:
    """Return the timeout of the header, in milliseconds.  Raises `Invalid`."""
    given = request.headers.get(TIMEOUT_HEADER)
    if given is None:
        return None
    if not re.fullmatch("[0-9]{1,6}", given) or not 1 <= int(given) <= MAX_TIMEOUT_MS:
        detail = f"{TIMEOUT_HEADER} must be a whole number from 1 to {MAX_TIMEOUT_MS}"
        raise Invalid(detail, faults=[Fault("", "invalid_header", detail)])
    return int(given)


def is_streamed(request: Request) -> bool:
    """Return whether the response is a stream, by the parameter `stream`.  Raises `Invalid`."""
    given = request.query_params.get("stream", "0").lower()
    if given not in ON + OFF:
        detail = "the parameter stream is 1 or 0"
        raise Invalid(detail, faults=[Fault("", "invalid_parameter", detail)])
    return given in ON


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
