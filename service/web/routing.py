"""Access to the service from routes, and JSON responses."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Request, Response

from service.web.wire.requests import Requests
from service.wiring.bootstrap import Service

SERVER_TIMING = "Server-Timing"


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
