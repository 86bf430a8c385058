"""What endpoints share: the service, the context of a request, and JSON responses."""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import orjson
from fastapi import Request, Response

from service.core.errors import Fault, Forbidden, Invalid
from service.core.settings.sections import MAX_TIMEOUT_MS
from service.serving.context import Account, Context, RequestRecord, free
from service.web.keys import ANYONE
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
    in_header = header_timeout(request)
    timeout_ms = timeout_ms or in_header or service.settings.server.default_timeout_ms
    context = Context(
        state.request_id,
        0.0,
        key.lane(lane),
        service.instruments,
        state.span,
        Account(key.name or None, charge_of(request)),
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
