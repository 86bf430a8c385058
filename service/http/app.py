"""The apps on a service: the public API, and the instruments on a port of their own."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service import __version__
from service.bootstrap import Service
from service.errors import Malformed, MethodNotAllowed, NotFound, ScoregateError
from service.http.keys import Keys
from service.http.middleware import Edge
from service.http.openapi import components
from service.http.problems import problem
from service.http.requests import Requests
from service.http.responses import Problem
from service.http.routes import health, metrics, models, questions, score


def create_app(service: Service) -> FastAPI:
    """The public API of *service*.  Raises `SettingsError` where the file of keys cannot be used."""
    app = FastAPI(title="Scoregate", version=__version__, redirect_slashes=False)
    app.state.service = service
    app.state.requests = Requests(service.metrics)
    for route in (score, questions, models, health):
        app.include_router(route.router)
    server = service.settings.server
    if server.metrics_port is None:
        app.include_router(metrics.router)
    app.add_middleware(
        Edge,
        keys=Keys.read(server.api_keys_file),
        body_limit=server.body_limit_mb * 2**20,
        instruments=service.instruments,
    )
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
    """The OpenAPI document, with the bodies that the routes read themselves."""
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = app.openapi_schema.setdefault("components", {}).setdefault("schemas", {})
        requests: Requests = app.state.requests
        schemas |= components(requests.score, requests.questions, Problem)
    return app.openapi_schema
