"""The OpenAPI document: what FastAPI derives from the routes, with the bodies that they read and write."""

from collections.abc import Sequence
from typing import Any

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from service import __version__
from service.web.openapi import KEYS, components
from service.web.wire.requests import Requests
from service.web.wire.responses import Problem, score_answer
from service.wiring.bootstrap import Service


def openapi(service: Service, requests: Requests, routes: Sequence[APIRoute]) -> dict[str, Any]:
    """Build the OpenAPI document of *routes*."""
    document = get_openapi(title="Scoregate", version=__version__, routes=routes)
    answer = score_answer(service.metrics)
    schemas = components(requests.score, requests.rank, requests.questions, answer, Problem)
    served = getattr(service, "engine", service).metrics  # all declared metrics before the engine exists
    schemas["ScoreRequest"]["properties"]["metrics"]["items"]["enum"] = list(served)
    for ranked in ("RankRequest", "WireCascade"):
        schemas[ranked]["properties"]["metric"]["enum"] = list(served)
    document["components"]["schemas"] |= schemas
    document["components"]["securitySchemes"] = KEYS
    if service.settings.server.api_keys_file:
        document["security"] = [{scheme: []} for scheme in KEYS]
    return document
