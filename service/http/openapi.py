"""What the OpenAPI document says of a route."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from service.errors import ScoregateError

REFERENCE = "#/components/schemas/{model}"


def tree(error: type[ScoregateError] = ScoregateError) -> Iterator[type[ScoregateError]]:
    """Every class of the error tree."""
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


def problems() -> dict[int | str, dict[str, Any]]:
    """Every status an error can have, with the codes that come under it."""
    codes: dict[int, list[str]] = {}
    for error in tree():
        codes.setdefault(error.status, []).append(error.code)
    return {
        status: {
            "description": ", ".join(sorted(codes[status])),
            "content": {"application/problem+json": {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
        }
        for status in sorted(codes)
    }


def documented(shape: type[BaseModel] | None, request: type[BaseModel] | None = None) -> dict[str, Any]:
    """Arguments of a route whose handler reads and writes bodies itself."""
    route: dict[str, Any] = {"response_model": None, "responses": problems()}
    if shape is not None:
        route["responses"][200] = {"model": shape}
    if request is not None:
        json_schema = {"$ref": REFERENCE.format(model=request.__name__)}
        form = {
            "type": "object",
            "required": ["request"],
            "properties": {"request": json_schema},
            "additionalProperties": {"type": "string", "format": "binary"},
        }
        route["openapi_extra"] = {
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": json_schema},
                    "multipart/form-data": {"schema": form},
                },
            }
        }
    return route


def components(*models: type[BaseModel]) -> dict[str, Any]:
    """Schemas of *models* for the components section, by name."""
    schemas: dict[str, Any] = {}
    for model in models:
        schema = model.model_json_schema(ref_template=REFERENCE)
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    return schemas
