"""`api.md`: the OpenAPI document as tables: routes, fields and answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.routing import Route

from docs.render.app import public_app
from docs.render.markdown import code, entries, join, prose, summary, table
from docs.render.schema import default, words
from service.observability.notes import Code
from service.web.openapi import REQUEST_ID, tree

INTRO = """
# All endpoints

Fields, defaults and statuses of the API, as `GET /openapi.json` has them ([how the API works](../api.md)).
Every response has the header `X-Request-Id`: the caller's, if it is 1 to 128 of `A-Za-z0-9._-`, else a new
one. Types are strict: `"5"` is no number. Optional fields may be `null`, and unknown ones are rejected. The
[options and details](metrics.md) of metrics and the [error codes](errors.md) have pages of their own.
"""
PICTURES = """
## Pictures

A *picture* is base64 as a text, or one of [ImageData](#imagedata), [ImagePart](#imagepart) and
[ImageUrl](#imageurl); *frames* are a list of 1 to 64 pictures of one scene ([formats](../api.md#pictures)).
"""
WARNINGS = """
## Warnings

The stable codes in `warning_codes`:
"""
BODY = "application/json"
SINGLE = "text or [ImageData](#imagedata) or [ImagePart](#imagepart) or [ImageUrl](#imageurl)"
SHORT = {  # types that many fields have
    f"{SINGLE} or list of {SINGLE}, 1 to 64 entries": "[picture or frames](#pictures)",
    SINGLE: "[picture](#pictures)",
}
BY_METRIC = {"Options": "options", "Details": "details"}  # objects that are shown on the page of metrics


def page() -> str:
    """Return the page: the table of endpoints, each endpoint, and the objects in their bodies."""
    document = public_app().openapi()
    schemas = document["components"]["schemas"]
    objects = (
        part
        for name in sorted(inner(document) | {"Problem"})
        for part in (f"### {name}", *described(schemas[name], schemas))
    )
    warnings = [[code(name), f"The score {said}"] for name, said in entries(Code.__doc__).items()]
    return join(
        INTRO,
        table(["endpoint", "what it does"], endpoints()),
        *operations(document),
        PICTURES,
        WARNINGS,
        table(["code", "meaning"], warnings),
        "## Objects",
        *objects,
    )


def endpoints() -> Iterator[list[str]]:
    """Yield every route of the app; those of pages and files are not in the OpenAPI document."""
    for route in public_app().routes:
        assert isinstance(route, Route)
        methods = sorted(set(route.methods or ()) - {"HEAD"})
        paths = code(*(f"{method} {route.path}" for method in methods))
        yield [paths, summary(route.endpoint.__doc__)]


def operations(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield each operation: its parameters, the fields of its body, those of its answer, and its errors."""
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"## {method.upper()} {path}"
            yield prose(operation["description"])
            given = [each for each in operation["parameters"] if each["name"] != REQUEST_ID["name"]]
            yield table(("parameter", "in", "value", "meaning"), map(parameter, given))
            if body := operation.get("requestBody"):
                yield "**Request**"
                yield from described(schemas[name_of(body["content"][BODY]["schema"])], schemas)
            yield from answers(operation["responses"], schemas)


def parameter(given: Mapping[str, Any]) -> list[str]:
    """Return the row of a parameter or a header."""
    return [code(given["name"]), given["in"], words(given["schema"], code), given.get("description", "")]


def answers(responses: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of the answer with a status below 400, and the codes of a failed request."""
    whole = {error.code for error in tree() if error.where != "entry"}
    failed = []
    for status, response in responses.items():
        if int(status) >= 400:
            codes = [each for each in response["description"].split(", ") if each in whole]
            failed.append(f"{status} {code(*codes)}")
            continue
        content = response.get("content", {})
        if name := name_of(content.get(BODY, {}).get("schema", {})):
            yield f"**Answer {status}**"
            yield from described(schemas[name], schemas)
        for kind, form in content.items():
            if "description" in form["schema"]:
                yield f"As `{kind}`: {' '.join(form['schema']['description'].split())}"
    yield f"**Errors**: {'; '.join(failed)}"


def name_of(schema: Mapping[str, Any]) -> str:
    """Return the name of the schema that *schema* refers to; empty for another one."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def described(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words about an object and the table of its fields; only fields of requests have defaults."""
    yield prose(schema.get("description"))
    about, required = entries(schema.get("description")), schema.get("required", ())
    is_request, rows = schema.get("additionalProperties") is False, []
    for name, field in schema.get("properties", {}).items():
        if is_request:
            shown = "" if name_of(field) in BY_METRIC else default(field, name in required)
        else:
            shown = "always" if name in required else "not always"
        rows.append([code(name), shown, value_of(name, field), meaning(field) or about.get(name, "")])
    yield table(("field", "default" if is_request else "there", "value", "meaning"), rows)


def meaning(field: Mapping[str, Any]) -> str:
    """Return the description of a field, or of one of its types."""
    found = [field, *field.get("anyOf", ())]
    return next((each["description"] for each in found if "description" in each), "")


def value_of(name: str, field: Mapping[str, Any]) -> str:
    """Return the type of a field in few words."""
    text = words(field, linked)
    for long, short in SHORT.items():
        text = text.replace(long, short)
    is_metric = name in ("metric", "metrics", "required") and '`"vqascore"`' in text
    if is_metric:
        return "[metric](metrics.md)" if name == "metric" else "list of [metrics](metrics.md)"
    return text


def linked(name: str) -> str:
    """Return the name of an object with a link to its section."""
    return f"[{BY_METRIC[name]} by metric](metrics.md)" if name in BY_METRIC else f"[{name}](#{name.lower()})"


def inner(document: Mapping[str, Any]) -> set[str]:
    """Return the names of the objects in bodies and answers, those of metrics aside."""
    schemas, found = document["components"]["schemas"], set[str]()
    waiting = sorted({name for each in document["paths"].values() for name in references(each)})
    while waiting:
        for name in references(schemas[waiting.pop()]) - found - BY_METRIC.keys():
            found.add(name)
            waiting.append(name)
    return found


def references(schema: Any) -> set[str]:
    """Return the names of the schemas that *schema* refers to anywhere."""
    if isinstance(schema, Mapping):
        return ({name_of(schema)} - {""}).union(*map(references, schema.values()))
    return set[str]().union(*map(references, schema)) if isinstance(schema, list) else set()
