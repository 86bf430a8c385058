"""`GET /openapi.json`: the OpenAPI document; `GET /docs`: the playground's page about the API."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from service import __version__
from service.web.openapi import KEYS, REFERENCE, components
from service.web.routes.lifecycle import LoadRequest
from service.web.routing import json_response
from service.web.wire.details import details_by_metric
from service.web.wire.requests import Requests
from service.web.wire.responses import Problem, ScoreAnswer
from service.wiring.bootstrap import Service

router = APIRouter(include_in_schema=False)


@router.get("/openapi.json")
async def document(request: Request) -> Response:
    """Return the OpenAPI document."""
    return json_response(request.app.openapi())


@router.get("/docs")
async def docs(request: Request) -> Response:
    """Redirect to the page about the API, by a relative address: a proxy may have added a prefix."""
    return RedirectResponse("playground/docs.html")


def openapi(service: Service, requests: Requests, routes: Sequence[APIRoute]) -> dict[str, Any]:
    """Build the document of *routes*: what FastAPI derives, with the bodies that they read and write."""
    document = get_openapi(title="Scoregate", version=__version__, routes=routes)
    details = details_by_metric(service.metrics)
    bodies = requests.score, requests.rank, requests.questions, LoadRequest
    schemas = components(*bodies, ScoreAnswer, details, Problem)
    schemas["Result"]["properties"]["details"] = {"$ref": REFERENCE.format(model="Details")}
    served = getattr(service, "engine", service).metrics  # all declared metrics before the engine exists
    schemas["ScoreRequest"]["properties"]["metrics"]["items"]["enum"] = list(served)
    for ranked in ("RankRequest", "WireCascade"):
        schemas[ranked]["properties"]["metric"]["enum"] = list(served)
    document["components"]["schemas"] |= schemas
    document["components"]["securitySchemes"] = KEYS
    if service.settings.server.api_keys_file:
        document["security"] = [{scheme: []} for scheme in KEYS]
    return document
