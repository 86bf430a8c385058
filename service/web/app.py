"""The apps on a service: the public API, and the instruments on a port of their own."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from service import __version__
from service.core.errors import Malformed, MethodNotAllowed, NotFound, ScoregateError
from service.web.auth.keys import KeyFile
from service.web.auth.quotas import Quotas
from service.web.dialects.registry import routers
from service.web.dialects.scoring import Dialects
from service.web.edge import Edge
from service.web.headers import Cors
from service.web.openapi import KEYS, components
from service.web.problems import problem
from service.web.routes import health, metrics, models, playground, questions, rank, score
from service.web.server.incoming import Bodies
from service.web.wire.requests import Requests, requests_with
from service.web.wire.responses import Problem, score_answer
from service.wiring.bootstrap import Service


class Api(FastAPI):
    """
    FastAPI behind the edge, which serves the busiest routes without FastAPI's and Starlette's layers.

    Those layers take as long as a whole small request.  The routes read their bodies themselves, answer with
    a `Response` and raise nothing but our errors, so what the layers do is the edge's work already.

    Attributes:
        entry: the app with all that is around it.
        busy: those routes, by path.
        document: the OpenAPI document as it is sent; empty until somebody reads it.
    """

    entry: ASGIApp
    busy: Mapping[str, APIRoute]
    document: bytes = b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        scope["app"] = self
        await self.entry(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Without Starlette's own answer to what nobody handles: the edge has ours."""
        app: ASGIApp = super().build_middleware_stack().app  # type: ignore[attr-defined]
        return app

    async def routed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the route answer that the scope names."""
        route = self.busy.get(scope["path"]) if scope.get("method") == "POST" else None
        if route is None:
            await super().__call__(scope, receive, send)
            return
        scope["route"] = route
        response: Response = await route.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)


def create_app(service: Service) -> FastAPI:
    """The public API of *service*.  Raises `SettingsError` where the file of keys cannot be used."""
    app = Api(title="Scoregate", version=__version__, redirect_slashes=False, openapi_url=None)
    app.state.service = service
    app.state.requests = requests_with(service.metrics, service.settings.server.max_items)
    dialects = routers(service.settings.dialects.enabled)
    asking = [score.router, rank.router, questions.router, *dialects]
    app.busy = {route.path: route for router in asking for route in busy(router)}
    for router in (*asking, models.router, health.router):
        app.include_router(router)
    app.routes.extend([*playground.routes, Route("/openapi.json", document)])
    server = service.settings.server
    if server.metrics_port is None:
        app.include_router(metrics.router)
    app.state.dialects = Dialects(service)
    app.state.bodies = Bodies(server, service.memory, service.parser)
    app.state.quotas = Quotas()
    keys = KeyFile(server.api_keys_file)
    app.entry = Edge(app.routed, service=service, keys=keys, bodies=app.state.bodies)
    if server.cors_origins:  # around the edge, whose refusals those pages may read, too
        app.entry = Cors(app.entry, origins=server.cors_origins)
    app.add_exception_handler(ScoregateError, scoregate_error)
    app.add_exception_handler(HTTPException, http_error)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign]
    return app


def busy(router: APIRouter) -> Iterator[APIRoute]:
    """The routes that ask models and have nothing in their path."""
    for route in router.routes:
        if isinstance(route, APIRoute) and route.methods == {"POST"} and not route.param_convertors:
            yield route


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
    if response.headers.get("Allow") == "GET":
        response.headers["Allow"] = "GET, HEAD"
    return response


async def document(request: Request) -> Response:
    """The OpenAPI document, written once: to write it takes as long as ten small requests."""
    app: Api = request.app
    app.document = app.document or orjson.dumps(app.openapi())
    return Response(app.document, media_type="application/json")


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
