"""
The app class that all ports share, and the edge: what every request passes before and after its endpoint.

Both are plain ASGI: Starlette's `BaseHTTPMiddleware` runs the route in a task of its own and breaks
cancellation.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from random import Random
from time import monotonic

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders, State
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.core.concurrency.tasks import CallerGone
from service.core.errors import (
    Draining,
    Malformed,
    MethodNotAllowed,
    NotFound,
    ScoregateError,
    TooLarge,
    Unauthorized,
)
from service.observability.instruments import GONE_STATUS, NO_LANE
from service.observability.tracing import NO_SPAN, Span
from service.web.endpoints import json_response
from service.web.keys import KeyFile
from service.web.problems import ERROR_FORMAT, ErrorFormat, response_to
from service.web.routes import pages
from service.web.server.body import Bodies, Body
from service.wiring.bootstrap import Service

log = logging.getLogger("scoregate.access")

DIGITS = re.compile(r"[0-9]+")
OPEN_PATHS = {"/livez", "/readyz", *pages.PATHS}  # paths that need no key

IDS = Random()  # seeded by the system; an id need not be a secret
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
REQUEST_HEADERS = (
    "Authorization",
    "X-API-Key",
    "Content-Type",
    "X-Request-Id",
    "X-Request-Timeout-Ms",
    "traceparent",
)
RESPONSE_HEADERS = ("X-Request-Id", "Retry-After", "Server-Timing", "WWW-Authenticate")


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
            statuses = statuses_of(each.path, declared)
            asks_models = "POST" in (each.methods or ())
            service.instruments.add_route(each.path, asks_models=asks_models, statuses=statuses)
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


def statuses_of(path: str, declared: Iterable[APIRoute]) -> list[int]:
    """Return the statuses of a path's responses, with that of callers that disconnect first."""
    documented = {int(code) for each in declared if each.path == path for code in each.responses}
    return sorted({*documented, GONE_STATUS})


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


class Edge:
    """
    Middleware for the request id, the key, the body's limits, errors, the access log and the counters.

    Args:
        keys: of the callers; None to serve every caller.
        error_format: returns the format of errors of a scope's path; None for a problem.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        keys: KeyFile | None,
        bodies: Bodies,
        error_format: Callable[[Scope], ErrorFormat | None] = lambda scope: None,
    ) -> None:
        self._app, self._keys, self._bodies, self._error_format = app, keys, bodies, error_format
        self._service, self._instruments = service, service.instruments

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = monotonic()
        # The first of each name is kept: Starlette's `Headers` encodes and compares all at each look-up.
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in reversed(scope["headers"])
        }
        request_id = request_id_of(headers)
        state = scope.setdefault("state", {})
        if head := scope["method"] == "HEAD":  # the response of GET, without its body
            scope = {**scope, "method": "GET"}
        state |= {"request_id": request_id, "began": began, "span": NO_SPAN}
        if self._instruments.routes.get(scope["path"]):  # it calls models
            name = f"{scope['method']} {scope['path']}"
            traceparent = headers.get("traceparent", "")
            state["span"] = Span.of_request(self._service.tracer, name, traceparent, began)
        # If both are there, a proxy may have read another body, and bytes after it cannot be trusted.
        two_lengths = "content-length" in headers and "transfer-encoding" in headers
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer = MutableHeaders(scope=message)
                mark(answer, request_id)
                if two_lengths:
                    answer["Connection"] = "close"
            elif head:
                message["body"] = b""
            await send(message)

        try:
            with Body(self._bodies, state) as body:
                await self._admit(scope, headers, two_lengths)
                await self._app(scope, partial(body.receive, receive), send_marked)
        except CallerGone:
            status = GONE_STATUS
        except (Exception, asyncio.CancelledError) as exc:
            known = self._known(exc, request_id)
            known.__traceback__ = None  # a reference cycle with this frame would keep the body
            error_format = self._error_format(scope)
            response = response_to(known, request_id, self._instruments, error_format, allow_of(exc))
            if not status:
                await response(scope, receive, send_marked)
        finally:
            self._note(scope, status, monotonic() - began)

    async def _admit(self, scope: Scope, headers: Mapping[str, str], two_lengths: bool) -> None:
        if scope["path"] not in OPEN_PATHS:
            if self._service.draining:
                raise Draining
            if self._keys:
                caller = (await self._keys.keys()).of(headers)
                if caller is None:
                    raise Unauthorized
                scope["state"] |= {"key": caller.name, "caller": caller}
                caller.check_path(scope["path"])
        if two_lengths:
            raise Malformed("a request must not have both Content-Length and Transfer-Encoding")
        declared = headers.get("content-length", "")
        if DIGITS.fullmatch(declared) and (len(declared) > 18 or int(declared) > self._bodies.limit):
            raise TooLarge(f"the body is larger than {self._bodies.limit} bytes")

    def _known(self, exc: BaseException, request_id: str) -> ScoregateError:
        """Return an exception as an error of ours, and log unknown ones.  Raises other cancellations."""
        if isinstance(exc, ScoregateError):
            return exc
        if isinstance(exc, HTTPException):  # Starlette's router raises it
            return MethodNotAllowed() if exc.status_code == 405 else NotFound()
        if isinstance(exc, asyncio.CancelledError):
            if not self._service.draining:
                raise exc
            return Draining("the service is shutting down and could not finish this request in time")
        log.error("request failed", extra={"request_id": request_id}, exc_info=exc)
        return ScoregateError()

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count the request, end its span, and write its line of the access log."""
        state, lane = scope["state"], NO_LANE
        route = getattr(scope.get("route"), "path", "other")
        fields = {"route": route, "code": status, "ms": round(1000 * seconds, 2)}
        fields |= {name: state[name] for name in ("request_id", "key", "items") if name in state}
        if context := state.get("context"):
            lane = fields["lane"] = context.lane
            fields["stages"] = context.request.stages or context.stages_ms()
        self._instruments.count_request(route, status, seconds, lane)
        if (span := state["span"]).recording:
            named = {name: fields[name] for name in ("request_id", "items", "lane") if name in fields}
            failed = {"error": str(status)} if status >= 500 else {}
            span.note(method=scope["method"], route=route, status=status, **named, **failed)
            span.end()
        log.info("request", extra=fields)


def allow_of(exc: BaseException) -> dict[str, str]:
    """Return the header of a 405; Starlette gives the methods in the order of a set."""
    allowed = (exc.headers or {}).get("Allow") if isinstance(exc, HTTPException) else None
    return {"Allow": ", ".join(sorted(allowed.split(", ")))} if allowed else {}


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the request's own id if it is valid, or a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else f"{IDS.getrandbits(128):032x}"


def mark(answer: MutableHeaders, request_id: str) -> None:
    """Add the headers of every response; the playground has set its own policy."""
    given = {name for name, _ in answer.raw}
    answer.raw.append((b"x-request-id", request_id.encode()))
    answer.raw.extend(header for header in SECURITY if header[0] not in given)


class Cors(CORSMiddleware):
    """CORS middleware for *origins*; preflight requests need no key."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(app, origins, ("GET", "POST"), REQUEST_HEADERS, expose_headers=RESPONSE_HEADERS)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a browser's preflight request."""
        response = super().preflight_response(request_headers)
        mark(response.headers, request_id_of(request_headers))
        return response
