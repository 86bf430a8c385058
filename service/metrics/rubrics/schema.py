"""JSON schemas of answers, as clients of OpenAI's format send them, as outputs."""

import json
from typing import Any

from pydantic import ValidationError

from service.metrics.rubrics.output import Output
from service.metrics.rubrics.rubric import MAX_BYTES, MAX_OUTPUTS

ANNOTATIONS = {"title", "description"}
OF_AN_OBJECT = ANNOTATIONS | {"type", "properties", "required", "additionalProperties"}
OF_A_PROPERTY = ANNOTATIONS | {"type", "enum", "minimum", "maximum"}
FORMS = (
    "must be an integer with minimum and maximum or with an enum of all integers between two, a number with "
    "both or neither, or a string with an enum or without"
)


def outputs_of(schema: Any) -> dict[str, Output]:
    """
    Return the output of each property of an object, which are all required.

    Raises:
        ValueError: the schema has another form, whose answers could not be checked; names the property.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError("the schema must be of an object")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not 1 <= len(properties) <= MAX_OUTPUTS:
        raise ValueError(f"the schema must have 1 to {MAX_OUTPUTS} properties")
    if set(schema.get("required") or ()) != properties.keys():
        raise ValueError("all properties must be required")
    if unknown := schema.keys() - OF_AN_OBJECT:
        raise ValueError(f"the keyword {min(unknown)} is not supported")
    if schema.get("additionalProperties", False) is not False:
        raise ValueError("additionalProperties must be false")
    if len(json.dumps(schema)) > MAX_BYTES:
        raise ValueError(f"the schema has more than {MAX_BYTES} bytes")
    return {name: output_of(each, name) for name, each in properties.items()}


def output_of(schema: Any, name: str) -> Output:
    """Return the output of one property.  Raises `ValueError`."""
    if isinstance(schema, dict) and (unknown := schema.keys() - OF_A_PROPERTY):
        raise ValueError(f"{name}: the keyword {min(unknown)} is not supported")
    fields: dict[str, Any]
    match schema:
        case {"type": "integer", "enum": [first, *_, last] as grades}:
            fields = {"range": [first, last]}
            if not all(type(grade) is int for grade in grades) or grades != [*range(first, last + 1)]:
                raise ValueError(f"{name}: {FORMS}")
        case {"type": "integer" | "number" as kind, "minimum": low, "maximum": high}:
            fields = {"range": [low, high]} | ({"kind": kind} if kind == "number" else {})
        case {"type": "number"} if not schema.keys() & {"minimum", "maximum", "enum"}:
            fields = {"kind": "number"}
        case {"type": "string", "enum": labels}:
            fields = {"labels": labels}
        case {"type": "string"}:
            fields = {"kind": "text"}
        case _:
            raise ValueError(f"{name}: {FORMS}")
    try:
        return Output.model_validate(fields)
    except ValidationError as exc:
        raise ValueError(f"{name}: {exc.errors()[0]['msg'].removeprefix('Value error, ')}") from exc
