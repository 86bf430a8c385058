"""The public API as an ASGI app, and the app class that the dialects' own port shares."""

from collections.abc import Iterable, Sequence
from functools import cache

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from service.observability.build import commit
from service.web.auth.keys import KeyFile
from service.web.auth.quotas import Quotas
from service.web.dialects.registry import routers
from service.web.dialects.scoring import Dialects
from service.web.edge import Edge
from service.web.headers import Cors
from service.web.problems import ERROR_FORMAT, ErrorFormat
from service.web.routes import (
    document,
    health,
    lifecycle,
    metrics,
    models,
    playground,
    questions,
    rank,
    score,
)
from service.web.server.incoming import Bodies
from service.web.wire.requests import requests_with
from service.wiring.bootstrap import Service


class App:
    """
    An ASGI app that calls the endpoint of a request's path.

    FastAPI declares the routes and writes the OpenAPI document.  Endpoints are called without its layers,
    which take as long as a whole small request: endpoints read their bodies themselves and return a
    `Response`.  The edge handles their errors.

    Attributes:
        state: objects that the endpoints share.
        routes: routes in the order in which paths with parameters are matched.
        entry: the app with its middleware.
    """

    def __init__(self, service: Service, routers: Iterable[APIRouter], pages: Sequence[Route] = ()) -> None:
        self.state = State({"service": service})
        declared = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
        paths = dict.fromkeys(each.path for each in declared)
        endpoints = [route_of(path, [each for each in declared if each.path == path]) for path in paths]
        self._router = Router([*endpoints, *pages], redirect_slashes=False)
        self.routes = self._router.routes
        for each in endpoints:
            service.instruments.add_route(each.path, asks_models="POST" in (each.methods or ()))
        self._by_path = {(method, each.path): each for each in endpoints for method in each.methods or ()}
        self.entry: ASGIApp = self.dispatch
        # Building the OpenAPI document takes as long as many small requests.
        self.openapi = cache(lambda: document.openapi(service, self.state.requests, declared))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        scope["app"] = self
        await self.entry(scope, receive, send)

    async def dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the endpoint of the path.  Starlette's router matches paths with parameters."""
        route = self._by_path.get((scope.get("method", ""), scope.get("path", "")))
        if route is None:
            await self._router(scope, receive, send)
            return
        scope["route"] = route
        response: Response = await route.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def error_format(self, scope: Scope) -> ErrorFormat | None:
        """Return the format that the endpoint of the path declares for its errors, whatever the method."""
        found = (each for each in self.routes if each.matches(scope)[0] is not Match.NONE)
        return getattr(getattr(next(found, None), "endpoint", None), ERROR_FORMAT, None)


def route_of(path: str, declared: list[APIRoute]) -> Route:
    """Return one route for a path, so that a 405 lists the methods of all *declared* ones."""
    by_method = {method: each.endpoint for each in declared for method in each.methods or ()}
    if len(declared) == 1:
        return Route(path, declared[0].endpoint, methods=[*by_method])

    async def endpoint(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        response: Response = await by_method[method](request)
        return response

    return Route(path, endpoint, methods=[*by_method])


def create_app(service: Service) -> App:
    """Build the public API.  Raises `SettingsError` if the file of keys cannot be used."""
    server = service.settings.server
    shown = [score.router, rank.router, questions.router, *routers(service.settings.dialects.enabled)]
    shown += [models.router, lifecycle.router, health.router, document.router]
    if server.metrics_port is None:
        shown.append(metrics.router)
    commit()  # of the code that runs: the checkout may change later
    app = App(service, shown, playground.routes)
    app.state.requests = requests_with(service.metrics, server.max_items)
    app.state.dialects = Dialects(service)
    app.state.bodies = Bodies(server, service.memory, service.parser)
    app.state.quotas = Quotas()
    keys = KeyFile(server.api_keys_file)
    app.entry = Edge(app.dispatch, service, keys, app.state.bodies, app.error_format)
    if server.cors_origins:  # outermost, so that pages of other origins can read the edge's errors
        app.entry = Cors(app.entry, origins=server.cors_origins)
    return app
