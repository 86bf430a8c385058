"""Headers that every answer has, and what the pages of other hosts may do where the operator lists them."""

import re
import uuid
from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
SENT = ("Authorization", "X-API-Key", "Content-Type", "X-Request-Id", "X-Request-Timeout-Ms", "traceparent")
READ = ("X-Request-Id", "Retry-After", "Server-Timing", "WWW-Authenticate")


def request_id_of(headers: Headers) -> str:
    """The id of a request: its own, if that is one, or else a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def mark(answer: MutableHeaders, request_id: str) -> None:
    """Give *answer* the headers that every one has; a page of ours may have set a policy of its own."""
    answer["X-Request-Id"] = request_id
    for name, value in SECURITY.items():
        answer.setdefault(name, value)


class Cors(CORSMiddleware):
    """Lets pages of these *origins* read answers; it asks for no key before a browser has sent one."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(app, origins, ("GET", "POST"), SENT, expose_headers=READ)

    def preflight_response(self, request_headers: Headers) -> Response:
        """What a browser is told that asks before it sends."""
        response = super().preflight_response(request_headers)
        mark(response.headers, request_id_of(request_headers))
        return response
