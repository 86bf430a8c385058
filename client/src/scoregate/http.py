"""
The HTTP library, imported here only, so that a move to another is a change of one line (ADR 0026).

And the errors that responses are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import httpx2 as httpx

from scoregate.errors import ScoregateError, ServiceConnectionError, error_of

__all__ = ["failure", "httpx", "problem_of", "retry_after_s"]

PROXY_STATUSES = (429, 502, 503, 504)  # a response without a code of the service did not reach it


class Answered(Protocol):
    """A complete response, such as `scoregate.connection.Reply`."""

    @property
    def url(self) -> str: ...

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def json(self) -> Any:
        """Parse the JSON.  Raises `ScoregateError`."""


def failure(reply: Answered) -> ScoregateError:
    """Return the error of a response; `ServiceConnectionError` for an error page of a proxy."""
    request_id = reply.headers.get("x-request-id", "")
    error = error_of(problem_of(reply) or foreign_problem(reply), status=reply.status, request_id=request_id)
    if error.retry_after_s is None:
        error.retry_after_s = retry_after_s(reply.headers)
    return error


def foreign_problem(reply: Answered) -> Mapping[str, Any]:
    """Return a problem for the response of another program, such as a proxy."""
    if reply.status in PROXY_STATUSES:
        code, detail = ServiceConnectionError.code, f"a proxy answered {reply.status} in place of {reply.url}"
    else:
        code, detail = ScoregateError.code, f"HTTP {reply.status} from {reply.url}, not in the service's form"
    return {"code": code, "detail": detail}


def problem_of(reply: Answered) -> Mapping[str, Any] | None:
    """Return the problem in a response of the service; None for the response of another program."""
    try:
        content = reply.json()
    except ScoregateError:
        return None
    ours = isinstance(content, dict) and "detail" in content and isinstance(content.get("code"), str)
    return content if ours else None


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the header `Retry-After`; dates are ignored, since clocks differ."""
    value = headers.get("retry-after", "").strip()
    return float(value) if value.isascii() and value.isdigit() else None
