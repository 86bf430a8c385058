"""
What happens to every request before and after its route, as plain ASGI.

(Starlette's `BaseHTTPMiddleware` runs the route in a task of its own and breaks cancellation.)
"""

import logging
import re
import uuid
from time import monotonic

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.concurrency.disconnect import CallerGone
from service.errors import ScoregateError, TooLarge, Unauthorized
from service.http.keys import Keys
from service.http.problems import problem
from service.telemetry import Instruments

log = logging.getLogger("scoregate.access")

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
DIGITS = re.compile(r"[0-9]+")
OPEN = {"/livez", "/readyz"}  # never ask for a key


class Edge:
    """Request id, key, body limit; then one access line and one count for whatever happened."""

    def __init__(self, app: ASGIApp, *, keys: Keys, body_limit: int, instruments: Instruments) -> None:
        self._app, self._keys, self._limit = app, keys, body_limit
        self._instruments = instruments

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = monotonic()
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state |= {"request_id": request_id, "began": began}
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            self._admit(scope, headers)
            await self._app(scope, self._limited(receive), send_marked)
        except CallerGone:
            status = 499
        except Exception as exc:
            known = exc if isinstance(exc, ScoregateError) else ScoregateError()
            if known is not exc:
                log.error("request failed", extra={"request_id": request_id}, exc_info=exc)
            self._instruments.count_rejection(known)
            if not status:
                await problem(known, request_id)(scope, receive, send_marked)
        finally:
            self._note(scope, status, monotonic() - began)

    def _admit(self, scope: Scope, headers: Headers) -> None:
        if self._keys and scope["path"] not in OPEN:
            scope["state"]["key"] = self._keys.name_of(headers)
            if scope["state"]["key"] is None:
                raise Unauthorized
        declared = headers.get("content-length", "")
        if DIGITS.fullmatch(declared) and (len(declared) > 18 or int(declared) > self._limit):
            raise self._too_large()

    def _limited(self, receive: Receive) -> Receive:
        """*receive* that stops at the limit, whatever length was declared."""
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise self._too_large()
            return message

        return receive_limited

    def _too_large(self) -> TooLarge:
        return TooLarge(f"the body is larger than {self._limit} bytes")

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._instruments.count_request(route, status, seconds)
        fields = {name: scope["state"].get(name) for name in ("request_id", "key", "lane", "items")}
        known = {name: value for name, value in fields.items() if value is not None}
        log.info(
            "request",
            extra={"route": route, "code": status, "ms": round(1000 * seconds, 2), **known},
        )
