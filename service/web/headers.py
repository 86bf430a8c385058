"""Headers that every answer has, and what the pages of other hosts may do where the operator lists them."""

import re
from collections.abc import Sequence
from random import Random

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

IDS = Random()  # seeded by the system; an id need not be a secret
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)
SENT = ("Authorization", "X-API-Key", "Content-Type", "X-Request-Id", "X-Request-Timeout-Ms", "traceparent")
READ = ("X-Request-Id", "Retry-After", "Server-Timing", "WWW-Authenticate")


def request_id_of(headers: Headers) -> str:
    """The id of a request: its own, if that is one, or else a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else f"{IDS.getrandbits(128):032x}"


def mark(answer: MutableHeaders, request_id: str) -> None:
    """Give *answer* the headers that every one has; a page of ours may have set a policy of its own."""
    given = {name for name, _ in answer.raw}
    answer.raw.append((b"x-request-id", request_id.encode()))
    answer.raw.extend(header for header in SECURITY if header[0] not in given)


class Cors(CORSMiddleware):
    """Lets pages of these *origins* read answers; it asks for no key before a browser has sent one."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(app, origins, ("GET", "POST"), SENT, expose_headers=READ)

    def preflight_response(self, request_headers: Headers) -> Response:
        """What a browser is told that asks before it sends."""
        response = super().preflight_response(request_headers)
        mark(response.headers, request_id_of(request_headers))
        return response
