"""Headers of every response, and CORS for the origins in the settings."""

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
        super().__init__(app, origins, ("GET", "POST"), SENT, expose_headers=READ)

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a browser's preflight request."""
        response = super().preflight_response(request_headers)
        mark(response.headers, request_id_of(request_headers))
        return response
