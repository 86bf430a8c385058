"""Errors to HTTP responses: `application/problem+json` (RFC 9457), or a dialect's own format."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

import orjson
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from starlette.responses import Response

from service.core.errors import Fault, Invalid, ScoregateError
from service.core.fields import BRANCHES
from service.core.retry_after import header_value
from service.observability.instruments import Instruments
from service.web.wire.responses import ErrorEntry, FaultEntry, Problem

ErrorPath = Sequence[str | int]

PROBLEM_MEDIA_TYPE = "application/problem+json"
MAX_FAULTS = 20
MAX_NAME = 64
MAX_VALID = 32  # names that an error lists
ERROR_FORMAT = "error_format"  # the attribute of an endpoint whose errors have a format of their own
DOCS = "/docs"  # the page about the API, on this server


def response_to(
    error: ScoregateError,
    request_id: str,
    instruments: Instruments,
    error_format: "ErrorFormat | None" = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Count the rejection of a request and build the response.  Every request that fails passes here once."""
    instruments.count_rejection(error)
    response = (error_format or problem)(error, request_id)
    response.headers.update(headers or {})
    return response


def problem(error: ScoregateError, request_id: str) -> Response:
    """Build the response to a failed request."""
    body: Problem = {
        "type": f"urn:scoregate:error:{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "request_id": request_id,
    }
    if error.faults:
        faults = error.faults[:MAX_FAULTS]
        body["errors"] = [fault_entry(fault) for fault in faults]
        if any(fault.valid for fault in faults):
            body["docs"] = DOCS
    add_wait(body, error)
    return Response(orjson.dumps(body), error.status, headers_of(error), PROBLEM_MEDIA_TYPE)


def headers_of(error: ScoregateError, status: int | None = None, most_s: float = math.inf) -> dict[str, str]:
    """
    Return the headers of the response to an error, in any format.

    Args:
        status: of the response, if it is not that of the error.
        most_s: the longest `Retry-After` in seconds, before the jitter.
    """
    status = status or error.status
    if status in (429, 503):
        return {"Retry-After": header_value(error, most_s)}
    return {"WWW-Authenticate": "Bearer"} if status == 401 else {}


def add_wait(content: Problem | ErrorEntry, error: ScoregateError) -> None:
    """Add `retry_after_s` to the content of an error for which a wait was predicted."""
    if error.retry_after_s is not None:
        content["retry_after_s"] = error.retry_after_s


def fault_entry(fault: Fault) -> FaultEntry:
    """Return a fault as an entry of a problem."""
    content: FaultEntry = {"pointer": fault.pointer, "code": fault.code, "detail": fault.detail}
    if fault.valid:
        content["valid"] = [*fault.valid[:MAX_VALID]]
    if fault.did_you_mean:
        content["did_you_mean"] = fault.did_you_mean
    return content


ErrorFormat = Callable[[ScoregateError, str], Response]
"""A function of an error and the request id."""

E = TypeVar("E", bound=Callable[..., Any])


def errors_in(error_format: ErrorFormat) -> Callable[[E], E]:
    """Declare the format of an endpoint's errors, of those before it is called too: no key, a large body."""

    def declared(endpoint: E) -> E:
        setattr(endpoint, ERROR_FORMAT, error_format)
        return endpoint

    return declared


def entry(error: ScoregateError) -> ErrorEntry:
    """Return the error as an entry of a partial response."""
    content: ErrorEntry = {"code": error.code, "detail": error.detail}
    add_wait(content, error)
    return content


def invalid(exc: ValidationError, body: Any, wire: type[BaseModel]) -> Invalid:
    """
    Build the error with the wrong places of *body* (at most twenty), by JSON pointer, without content.

    Args:
        wire: the type that *body* is not.
    """
    errors = exc.errors(include_url=False, include_context=False)
    faults = [fault_of(error, body, wire) for error in errors[:MAX_FAULTS]]
    first = f"{faults[0].pointer or 'the body'}: {faults[0].detail}"
    more = len(errors) - 1
    return Invalid(first + (f" (and {more} more)" if more else ""), faults=faults)


def fault_of(error: ErrorDetails, body: Any, wire: type[BaseModel]) -> Fault:
    """Return the fault of a validation error; that of an unknown field or word has the valid ones."""
    where = place(error, body)
    at, kind = pointer(where), error["type"]
    if kind == "extra_forbidden":
        valid = sorted({name for model in models_at(wire, where[:-1]) for name in model.model_fields})
        detail = f"there is no such field; there are {', '.join(valid[:MAX_VALID])}"
        return Fault.unknown(at, kind, detail, str(where[-1]), valid)
    if kind == "literal_error" and (words := [*words_at(wire, where)]):
        given = error["input"] if isinstance(error["input"], str) else ""
        return Fault.unknown(at, kind, error["msg"], given, words)
    text = error["msg"].removeprefix("Value error, ")
    if kind == "too_short":
        text = text.replace("List should have", "should have").replace(" after validation", "")
    return Fault(at, kind, text)


def place(error: ErrorDetails, body: Any) -> Sequence[str | int]:
    """Return the part of an error's location that exists in *body*, and the name of a missing field."""
    parts = [part for part in error["loc"] if part not in BRANCHES]
    for depth, part in enumerate(parts):
        try:
            body = body[part]
        except (LookupError, TypeError):
            return parts[: depth + (error["type"] == "missing")]
    return parts


def pointer(place: Sequence[str | int]) -> str:
    """Build a JSON pointer from a location; long names (of unknown fields) are cut."""
    parts = [str(part)[:MAX_NAME] for part in place]
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def models_at(annotation: Any, place: ErrorPath) -> Iterator[type[BaseModel]]:
    """Yield the models that a value at *place*, below a value of the type *annotation*, may be."""
    return (found for found in types_at(annotation, place) if get_origin(found) is not Literal)


def words_at(annotation: Any, place: ErrorPath) -> Iterator[str]:
    """Yield the texts of the literals that a value at *place* may be."""
    for found in types_at(annotation, place):
        if get_origin(found) is Literal:
            yield from (value for value in get_args(found) if isinstance(value, str))


def types_at(annotation: Any, place: ErrorPath) -> Iterator[Any]:
    """Yield the models and literals that a value at *place* may be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not place:
            yield annotation
        elif field := annotation.model_fields.get(str(place[0])):
            yield from types_at(field.annotation, place[1:])
        return
    if get_origin(annotation) is Literal and not place:
        yield annotation
    entry = bool(place) and isinstance(place[0], int) and get_origin(annotation) is list
    for argument in get_args(annotation):
        yield from types_at(argument, place[1:] if entry else place)
