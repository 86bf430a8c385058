"""Errors to HTTP, once: `application/problem+json` (RFC 9457)."""

import math
import random
from collections.abc import Sequence
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.responses import Response

from service.errors import Fault, Invalid, ScoregateError, TooLarge
from service.fields import BRANCHES

MEDIA_TYPE = "application/problem+json"
MAX_FAULTS = 20
MAX_NAME = 64


def problem(error: ScoregateError, request_id: str) -> Response:
    """The answer that a failed request gets."""
    body: dict[str, Any] = {
        "type": f"urn:scoregate:error:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "request_id": request_id,
    }
    headers = {}
    if error.faults:
        faults = error.faults[:MAX_FAULTS]
        body["errors"] = [{"pointer": f.pointer, "code": f.code, "detail": f.detail} for f in faults]
    if error.status in (429, 503) and not isinstance(error, TooLarge):
        wait = 1.0 if error.retry_after_s is None else error.retry_after_s
        body["retry_after_s"] = wait
        # Whole seconds with jitter, so that everyone who was refused does not return at once.
        headers["Retry-After"] = str(math.ceil(max(1.0, wait) * random.uniform(1.0, 1.25)))
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(orjson.dumps(body), error.status, headers, MEDIA_TYPE)


def entry(error: ScoregateError) -> dict[str, str]:
    """The error as an entry of a partial answer."""
    return {"code": error.code, "detail": error.detail}


def invalid(exc: ValidationError) -> Invalid:
    """Every wrong place of a body (the first twenty), by JSON pointer and without its content."""
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    faults = [
        Fault(pointer(error["loc"]), error["type"], error["msg"].removeprefix("Value error, "))
        for error in errors[:MAX_FAULTS]
    ]
    first = f"{faults[0].pointer or 'the body'}: {faults[0].detail}"
    more = len(errors) - 1
    return Invalid(first + (f" (and {more} more)" if more else ""), faults=faults)


def pointer(place: Sequence[str | int]) -> str:
    """A JSON pointer from pydantic's location; a long name (an unknown field's) is cut."""
    parts = [str(part)[:MAX_NAME] for part in place if part not in BRANCHES]
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)
