"""JSON schemas as words of a table."""

from collections.abc import Callable, Mapping
from typing import Any

from docs.render.markdown import code, value

Schema = Mapping[str, Any]
TYPES = {"integer": "whole number", "string": "text", "boolean": "true or false", "object": "object"}
UNLIMITED = 2**31
UNITS = {"minLength": "characters", "maxLength": "characters", "minItems": "entries", "maxItems": "entries"}


def words(schema: Schema, linked: Callable[[str], str]) -> str:
    """
    Return the type of a value.

    Args:
        linked: returns the words for the name of a schema.
    """
    if "$ref" in schema:
        return linked(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(value(each) for each in values if each is not None)
    if branches := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        found = [words(each, linked) for each in branches if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(found)) or "anything"
    kind = schema.get("type")
    if kind == "array":
        return f"list of {words(schema.get('items', {}), linked)}{limits(schema)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {words(schema['additionalProperties'], linked)}"
    return TYPES.get(str(kind), "anything" if kind is None else str(kind)) + limits(schema)


def limits(schema: Schema) -> str:
    """Return the limits of a number, a text or a list, with a comma before them."""
    least = schema.get("minimum", schema.get("minItems"))
    most = schema.get("maximum", schema.get("maxItems", schema.get("maxLength")))
    if most is not None and most >= UNLIMITED:
        most = None
    unit = next((f" {unit}" for name, unit in UNITS.items() if name in schema), "")
    if least is not None and least == most:
        return f", {least:g}{unit}"
    if least is not None and most is not None:
        return f", {least:g} to {most:g}{unit}"
    if most is not None:
        return f", at most {most:g}{unit}"
    if least is not None:
        return f", at least {least:g}{unit}"
    above = schema.get("exclusiveMinimum")
    return "" if above is None else f", above {above:g}"


def default(schema: Schema, required: bool) -> str:
    """Return the default of a field."""
    if required:
        return "required"
    return value(schema["default"]) if "default" in schema else ""


def named(name: str) -> str:
    """Return the name of a schema in code type."""
    return code(name)
