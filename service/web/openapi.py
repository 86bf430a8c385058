"""OpenAPI descriptions of routes that read their bodies and write their responses themselves."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from service.core.errors import ScoregateError
from service.core.settings.sections import MAX_TIMEOUT_MS

Json = dict[str, Any]

REFERENCE = "#/components/schemas/{model}"
TEXT: Json = {"type": "string"}

PLAIN_FORM = (
    "A form without `request` has files named `image` and the fields of the JSON: `prompt`, `metrics` "
    "separated by commas, and others as JSON or as a word."
)
FILE_PART = 'The image that `{"part": NAME}` refers to; a part with a filename.'
KEY_NOTE = "Needed if the server has keys; `/livez` and `/readyz` never need one."
KEYS: Json = {
    "bearer": {"type": "http", "scheme": "bearer", "description": KEY_NOTE},
    "api_key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": KEY_NOTE},
}

# Some statuses of errors belong to every request, and some to no route.
ANYWHERE, NOWHERE = {400, 408, 413, 500, 503}, {404, 405, 409}


def tree(error: type[ScoregateError] = ScoregateError) -> Iterator[type[ScoregateError]]:
    """Yield every class of the error tree."""
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


def header(name: str, schema: Json, description: str) -> Json:
    """Describe a request header."""
    return {"name": name, "in": "header", "required": False, "schema": schema, "description": description}


REQUEST_ID = header(
    "X-Request-Id",
    TEXT,
    "Returned as it is, if it is 1 to 128 letters, digits, dots, dashes or underscores.",
)
TIMEOUT = header(
    "X-Request-Timeout-Ms",
    {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_MS},
    "Time for the whole request in milliseconds, unless the body has `timeout_ms`.",
)
STREAM = {
    "name": "stream",
    "in": "query",
    "schema": {"type": "string", "enum": ["0", "1", "false", "true"], "default": "0"},
    "description": "Whether each item's result is a line of its own, sent when it is there.",
}
TRACE = header("traceparent", TEXT, "W3C Trace Context: the trace goes on here and in model servers.")


def sent(status: int, headers: Mapping[str, str]) -> Json:
    """Describe the headers of a response: those of a route and those of a status."""
    said = dict(headers)
    if status == 401:
        said["WWW-Authenticate"] = "How to send a key."
    if status in (429, 503):
        said["Retry-After"] = "Seconds to wait before the next try."
    described: Json = {name: {"schema": TEXT, "description": text} for name, text in said.items()}
    described["X-Request-Id"] = {
        "schema": TEXT,
        "required": True,
        "description": "The id of the request, which is also in the logs.",
    }
    return described


def problems(statuses: Collection[int]) -> dict[int | str, Json]:
    """Describe responses with *statuses* and the error codes of each."""
    codes: dict[int, list[str]] = {}
    for error in tree():
        codes.setdefault(error.status, []).append(error.code)
    content = {"application/problem+json": {"schema": {"$ref": REFERENCE.format(model="Problem")}}}
    return {
        status: {
            "description": ", ".join(sorted(codes[status])),
            "content": content,
            "headers": sent(status, {}),
        }
        for status in sorted(statuses)
    }


def documented(
    answer: type[Any] | None,
    request: type[BaseModel] | None = None,
    *,
    also: Collection[int] = (),
    never: Collection[int] = (),
    parameters: Sequence[Json] = (),
    headers: Mapping[str, str] = {},
    lines: tuple[str, str] | None = None,
    key: bool = True,
    status: int = 200,
) -> Json:
    """
    Build the arguments of a route whose endpoint reads and writes bodies itself.

    Args:
        answer: the JSON of the success.
        request: the body, as JSON or as the part `request` of a form.
        also, never: error statuses to add to, or to remove from, the usual ones.
        parameters: parameters other than the body and the request id.
        headers: response headers other than the request id, with descriptions.
        lines: the media type of another form of the response, and a description.
        key: whether the route needs an API key.
        status: of the success.
    """
    every = {error.status for error in tree()}
    statuses = (every - NOWHERE if request else ANYWHERE) | ({401, 403} if key else set())
    responses = problems((statuses | set(also)) - set(never))
    responses[status] = {"headers": sent(status, headers)} | ({"model": answer} if answer else {})
    if lines:
        schema = {"type": "string", "description": lines[1]}
        responses[status]["content"] = {lines[0]: {"schema": schema}}
    extra: Json = {"parameters": [REQUEST_ID, *parameters]}
    if request:
        extra["requestBody"] = body(request)
    if not key:
        extra["security"] = []
    return {"response_model": None, "status_code": status, "responses": responses, "openapi_extra": extra}


def body(request: type[BaseModel]) -> Json:
    """Describe a request's body, as JSON and as a form; a form of plain fields is described in words."""
    schema = {"$ref": REFERENCE.format(model=request.__name__)}
    form = {
        "type": "object",
        "description": PLAIN_FORM,
        "required": ["request"],
        "properties": {"request": schema},
        "propertyNames": {"minLength": 1, "maxLength": 256},
        "additionalProperties": {"type": "string", "format": "binary", "description": FILE_PART},
    }
    part = {"request": {"contentType": "application/json"}}
    return {
        "required": True,
        "content": {
            "application/json": {"schema": schema},
            "multipart/form-data": {"schema": form, "encoding": part},
        },
    }


def components(*models: type[Any]) -> Json:
    """Build the schemas of *models* for the components section, by name."""
    mode: Literal["validation"] = "validation"
    given = [(model.__name__, mode, TypeAdapter(model)) for model in models]
    own, shared = TypeAdapter.json_schemas(given, ref_template=REFERENCE)
    defined: Json = shared.get("$defs", {})
    return {**{name: schema for (name, _), schema in own.items()}, **defined}
