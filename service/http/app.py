"""The apps on a service: the public API, and the instruments on a port of their own."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service import __version__
from service.bootstrap import Service
from service.dialects.registry import routers
from service.dialects.scoring import Dialects
from service.errors import Malformed, MethodNotAllowed, NotFound, ScoregateError
from service.http.headers import Cors
from service.http.incoming import Bodies
from service.http.keys import KeyFile
from service.http.middleware import Edge
from service.http.openapi import KEYS, components
from service.http.problems import problem
from service.http.quotas import Quotas
from service.http.requests import Requests
from service.http.responses import Problem, score_answer
from service.http.routes import health, metrics, models, playground, questions, rank, score


def create_app(service: Service) -> FastAPI:
    """The public API of *service*.  Raises `SettingsError` where the file of keys cannot be used."""
    app = FastAPI(
        title="Scoregate", version=__version__, redirect_slashes=False, docs_url=None, redoc_url=None
    )
    app.state.service = service
    app.state.requests = Requests(service.metrics, service.settings.server.max_items)
    for route in (score, rank, questions, models, health):
        app.include_router(route.router)
    app.routes.extend(playground.routes)
    server = service.settings.server
    if server.metrics_port is None:
        app.include_router(metrics.router)
    app.state.dialects = Dialects(service)
    for router in routers(service.settings.dialects.enabled):
        app.include_router(router)
    app.state.bodies = Bodies(server)
    app.state.quotas = Quotas()
    app.add_middleware(Edge, service=service, keys=KeyFile(server.api_keys_file), bodies=app.state.bodies)
    if server.cors_origins:  # around the edge, whose refusals those pages may read, too
        app.add_middleware(Cors, origins=server.cors_origins)
    app.add_exception_handler(ScoregateError, scoregate_error)
    app.add_exception_handler(HTTPException, http_error)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app


async def scoregate_error(request: Request, error: Exception) -> Response:
    """One of our errors."""
    assert isinstance(error, ScoregateError)
    request.app.state.service.instruments.count_rejection(error)
    return problem(error, request.state.request_id)


async def http_error(request: Request, error: Exception) -> Response:
    """Starlette's own errors, in our form."""
    assert isinstance(error, HTTPException)
    kinds: dict[int, type[ScoregateError]] = {404: NotFound, 405: MethodNotAllowed}
    known = kinds.get(error.status_code, Malformed)()
    response = problem(known, request.state.request_id)
    response.headers.update(error.headers or {})
    return response


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the bodies that the routes read and write themselves."""
    if app.openapi_schema is None:
        service: Service = app.state.service
        requests: Requests = app.state.requests
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = components(
            requests.score, requests.rank, requests.questions, score_answer(service.metrics), Problem
        )
        served = getattr(service, "engine", service).metrics  # without an engine, all that could be
        schemas["ScoreRequest"]["properties"]["metrics"]["items"]["enum"] = list(served)
        for ranked in ("RankRequest", "WireCascade"):
            schemas[ranked]["properties"]["metric"]["enum"] = list(served)
        document["components"]["schemas"] |= schemas
        document["components"]["securitySchemes"] = KEYS
        if service.settings.server.api_keys_file:
            document["security"] = [{scheme: []} for scheme in KEYS]
        app.openapi_schema = document
    return app.openapi_schema
