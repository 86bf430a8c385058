"""The public API as an ASGI app, the app class that all ports share, and the operator's port."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, State
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from service.core.errors import Forbidden, UnsupportedMediaType
from service.core.settings.sections import host_and_port
from service.observability.build import commit
from service.web.dialects.registry import routers
from service.web.dialects.scoring import DialectScoring
from service.web.edge import Cors, Edge
from service.web.endpoints import json_response
from service.web.keys import KeyFile, Quotas
from service.web.problems import ERROR_FORMAT, ErrorFormat
from service.web.routes import decide, health, labels, models, pages, questions, scoring
from service.web.server.body import Bodies
from service.web.wire.types import requests_with
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

    def __init__(self, service: Service, routers: Iterable[APIRouter], files: Sequence[Route] = ()) -> None:
        self.state = State({"service": service})
        declared = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
        paths = dict.fromkeys(each.path for each in declared)
        endpoints = [route_of(path, [each for each in declared if each.path == path]) for path in paths]
        self._router = Router([*endpoints, *files], redirect_slashes=False)
        self.routes = self._router.routes
        for each in endpoints:
            service.instruments.add_route(each.path, asks_models="POST" in (each.methods or ()))
        self._by_path = {(method, each.path): each for each in endpoints for method in each.methods or ()}
        self.entry: ASGIApp = self.dispatch
        # Building the OpenAPI document takes as long as many small requests, and writing it as long as one.
        self.openapi = cache(lambda: pages.openapi(service, self.state.requests, declared))
        self.document = cache(lambda: bytes(json_response(self.openapi()).body))

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


def create_app(service: Service, *, keyless: bool = False) -> App:
    """
    Build the public API.

    Args:
        keyless: require no key, whatever the settings say.

    Raises:
        SettingsError: the file of keys cannot be used.
    """
    server = service.settings.server
    shown = [
        scoring.router,
        decide.router,
        labels.router,
        questions.router,
        *routers(service.settings.dialects.enabled),
    ]
    shown += [models.router, models.changes, health.router, pages.router]
    if server.metrics_port is None:
        shown.append(health.scraped)
    commit()  # the checkout may change later, so the commit of the code that runs is read now
    app = App(service, shown, pages.routes)
    app.state.requests = requests_with(service.metrics, server.max_items)
    app.state.dialects = DialectScoring(service)
    app.state.bodies = Bodies(server, service.memory, service.parser)
    app.state.quotas = Quotas()
    keys = KeyFile(server.api_keys_file) if server.api_keys_file and not keyless else None
    app.entry = Edge(app.dispatch, service, keys, app.state.bodies, app.error_format)
    if server.cors_origins:  # pages of other origins must be able to read the edge's errors
        app.entry = Cors(app.entry, origins=server.cors_origins)
    return app


def operator_app(service: Service, bodies: Bodies) -> ASGIApp:
    """Build the app; *bodies* is shared with the main port."""
    metrics, changing = service.instruments.app(), App(service, [models.changes])
    changing.state.operators = True

    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":  # the edge serves HEAD as GET
            check_origin(Headers(scope=scope), service.settings.server.operator_hosts)
        await changing(scope, receive, send)

    edge = Edge(own, service, None, bodies)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        changes = scope.get("path", "").startswith("/models/")
        await (edge if changes else metrics)(scope, receive, send)

    return app


def check_origin(headers: Headers, hosts: Collection[str]) -> None:
    """
    Refuse a change of models that a page of another origin may have sent.

    The port has no keys, and a browser on the operator's machine reaches it.

    Args:
        hosts: of the port, besides loopback.

    Raises:
        Forbidden: another `Host`, as of a page whose name was pointed to this address; or a foreign origin.
        UnsupportedMediaType: no JSON.  A page may send other types without a preflight request.
    """
    host = headers.get("host", "")
    if not is_loopback(name := name_of(host)) and name not in {host_and_port(each)[0] for each in hosts}:
        raise Forbidden(f"the host {host[:80]!r} is neither loopback nor listed in server.operator_hosts")
    origins = {each.partition("://")[2] for each in headers.getlist("origin")}
    if origins - {host} or set(headers.getlist("sec-fetch-site")) - {"same-origin", "none"}:
        raise Forbidden("a page of another origin must not change models")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType(
            "send a JSON body, such as {}, with the header Content-Type: application/json"
        )


def name_of(host: str) -> str:
    """Return the name or address in a `Host` header, in lower case; empty if there is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # the brackets hold no address
        return ""


def is_loopback(name: str) -> bool:
    """Return True for `localhost`, 127.0.0.0/8 and ::1."""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
