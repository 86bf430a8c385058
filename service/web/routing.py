"""How routes reach the service, and write what it said."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi import Request, Response

from service.web.wire.requests import Requests
from service.wiring.bootstrap import Service

SERVER_TIMING = "Server-Timing"


def service_of(request: Request) -> Service:
    """The service that this app runs."""
    service: Service = request.app.state.service
    return service


def requests_of(request: Request) -> Requests:
    """The requests that this app takes."""
    requests: Requests = request.app.state.requests
    return requests


def timing_header(timings_ms: Mapping[str, float]) -> dict[str, str]:
    """The header that tells browsers the stages of a request."""
    return {SERVER_TIMING: ", ".join(f"{stage};dur={ms}" for stage, ms in timings_ms.items())}


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON, written once and not validated again."""
    return Response(
        # A metric of another package may put what it likes into its details.
        orjson.dumps(content, default=str, option=orjson.OPT_SERIALIZE_NUMPY),
        status,
        headers,
        "application/json",
    )
