"""
The edge: what every request passes before and after its endpoint, as plain ASGI.

(Starlette's `BaseHTTPMiddleware` runs the route in a task of its own and breaks cancellation.)
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.core.concurrency.disconnect import CallerGone
from service.core.errors import (
    Draining,
    Malformed,
    MethodNotAllowed,
    NotFound,
    ScoregateError,
    TooLarge,
    Unauthorized,
)
from service.observability.instruments import NO_LANE
from service.observability.tracing import NO_SPAN, Span
from service.web.auth.keys import KeyFile
from service.web.headers import mark, request_id_of
from service.web.problems import ErrorFormat, response_to
from service.web.routes import playground
from service.web.server.incoming import Bodies
from service.wiring.bootstrap import Service

log = logging.getLogger("scoregate.access")

DIGITS = re.compile(r"[0-9]+")
OPEN = {"/livez", "/readyz", *playground.PATHS}  # paths that need no key


class Edge:
    """
    Middleware for the request id, the key, the body's limits, errors, the access log and the counters.

    Args:
        error_format: returns the format of errors of a scope's path; None for a problem.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        keys: KeyFile,
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
        headers = Headers(scope=scope)
        request_id = request_id_of(headers)
        state = scope.setdefault("state", {})
        if head := scope["method"] == "HEAD":  # the response of GET, without its body
            scope = {**scope, "method": "GET"}
        state |= {"request_id": request_id, "began": began, "span": self._span(scope, headers, began)}
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answer = MutableHeaders(scope=message)
                mark(answer, request_id)
                if has_two_lengths(headers):
                    answer["Connection"] = "close"
            elif head:
                message["body"] = b""
            await send(message)

        try:
            with self._bodies.coming(state) as body:
                await self._admit(scope, headers)
                await self._app(scope, lambda: body.receive(receive), send_marked)
        except CallerGone:
            status = 499
        except (Exception, asyncio.CancelledError) as exc:
            known = self._known(exc, request_id)
            known.__traceback__ = None  # a reference cycle with this frame would keep the body
            error_format = self._error_format(scope)
            response = response_to(known, request_id, self._instruments, error_format, allow_of(exc))
            if not status:
                await response(scope, receive, send_marked)
        finally:
            self._note(scope, status, monotonic() - began)

    def _span(self, scope: Scope, headers: Headers, began: float) -> Span:
        """Start the span of a request, if its route calls models."""
        if not self._instruments.routes.get(scope["path"]):
            return NO_SPAN
        name = f"{scope['method']} {scope['path']}"
        return Span.of_request(self._service.tracer, name, headers.get("traceparent", ""), began)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        if self._service.draining and scope["path"] not in OPEN:
            raise Draining
        if scope["path"] not in OPEN and (keys := await self._keys.keys()):
            caller = keys.of(headers)
            if caller is None:
                raise Unauthorized
            scope["state"] |= {"key": caller.name, "caller": caller}
        if has_two_lengths(headers):
            raise Malformed("a request must not have both Content-Length and Transfer-Encoding")
        declared = headers.get("content-length", "")
        if DIGITS.fullmatch(declared) and (len(declared) > 18 or int(declared) > self._bodies.limit):
            raise TooLarge(f"the body is larger than {self._bodies.limit} bytes")

    def _known(self, exc: BaseException, request_id: str) -> ScoregateError:
        """Return an exception as an error of ours, and log unknown ones.  Raises other cancellations."""
        if isinstance(exc, ScoregateError):
            return exc
        if isinstance(exc, HTTPException):  # of Starlette's router
            return MethodNotAllowed() if exc.status_code == 405 else NotFound()
        if isinstance(exc, asyncio.CancelledError):
            if not self._service.draining:
                raise exc
            return Draining("the service is shutting down and could not finish this request in time")
        log.error("request failed", extra={"request_id": request_id}, exc_info=exc)
        return ScoregateError()

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        fields = {name: scope["state"].get(name) for name in ("request_id", "key", "items")}
        lane = NO_LANE
        if context := scope["state"].get("context"):
            fields |= {"lane": (lane := context.lane), "stages": context.stages_ms()}
        self._instruments.count_request(route, status, seconds, lane)
        known = {name: value for name, value in fields.items() if value is not None}
        end(scope["state"]["span"], scope["method"], route, status, known)
        log.info(
            "request",
            extra={"route": route, "code": status, "ms": round(1000 * seconds, 2), **known},
        )


def end(span: Span, method: str, route: str, status: int, fields: Mapping[str, Any]) -> None:
    """End the span of a request, with the fields of the access log."""
    if not span.recording:
        return
    named = {name: fields[name] for name in ("request_id", "items", "lane") if name in fields}
    failed = {"error": str(status)} if status >= 500 else {}
    span.note(method=method, route=route, status=status, **named, **failed)
    span.end()


def allow_of(exc: BaseException) -> dict[str, str]:
    """Return the header of a 405; Starlette gives the methods in the order of a set."""
    allowed = (exc.headers or {}).get("Allow") if isinstance(exc, HTTPException) else None
    return {"Allow": ", ".join(sorted(allowed.split(", ")))} if allowed else {}


def has_two_lengths(headers: Headers) -> bool:
    """Return True if a proxy may have read another body, so that bytes after it cannot be trusted."""
    return "content-length" in headers and "transfer-encoding" in headers
