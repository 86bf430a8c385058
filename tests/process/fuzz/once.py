"""The document of our API with each part of a request whole at one place."""

import json
from copy import deepcopy
from typing import Any

ONE = "dsg"  # the metric that has options everywhere
ELSEWHERE = ("frames", "question_set")  # those that it has outside of `POST /score`: a word, and the deepest
# What `hooks.py` reads or writes, so that a request is valid.
NEEDED = (
    "id",
    "image",
    "images",
    "items",
    "metric",
    "options",
    "policy",
    "prompt",
    "on_deadline",
    "on_error",
)
SCHEMAS = "#/components/schemas/"
TEXTS = {"references", "source"}  # images of which no valid request of ours has any
PROSE = ("default", "description", "examples", "title")


def shortened(document: dict[str, Any]) -> dict[str, Any]:
    """
    Return the document by which schemathesis tries each boundary about once.

    It would try each at every place where a request has that part, and one model reads them all:

    * All metrics' options stand in the JSON of `POST /score`, where one that many have is the first one's.
    * Those of other paths and of items are two of one metric's.
    * What the items of several paths have is tried in those of `POST /score`.
    * A picture has all its forms but as a reference or a source: these are text.
    * The `request` of a form has what it needs.
    """
    short = deepcopy(document)
    schemas = short["components"]["schemas"]
    requests = ("ScoreRequest", "RankRequest", "CompareRequest", "DecideRequest", "QuestionsRequest")
    items = ("WireItem", "DecideItem", "ComparedItem")
    for name in (*requests, *items):
        properties = schemas[name]["properties"]
        properties.update({each: text(properties[each]) for each in TEXTS & properties.keys()})
        properties.get("options", {}).pop("default", None)  # it has other metrics' options
    every = schemas["Options"]
    seen: set[str] = set()
    whole = {metric: schema_of(schemas, option) for metric, option in every["properties"].items()}
    one = {name: least(schemas, whole[ONE]["properties"][name]) for name in ELSEWHERE}
    schemas["Options"] = every | {"properties": {ONE: whole[ONE] | {"properties": one}}}
    order = sorted(whole, key=lambda metric: metric != ONE)
    schemas["EveryOption"] = every | {"properties": {metric: unseen(whole[metric], seen) for metric in order}}
    seen.clear()
    schemas.update({name: unseen(schemas[name], seen, NEEDED) for name in items})
    for path in short["paths"].values():
        for body in bodies(path):
            form = body["content"]["multipart/form-data"]["schema"]["properties"]
            form["request"] = least(schemas, form["request"])
    scoring = deepcopy(schemas["ScoreRequest"])
    scoring["properties"]["options"]["$ref"] = f"{SCHEMAS}EveryOption"
    short["paths"]["/score"]["post"]["requestBody"]["content"]["application/json"]["schema"] = scoring
    return short


def bodies(path: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the operations of a path read."""
    return [operation["requestBody"] for operation in path.values() if "requestBody" in operation]


def schema_of(schemas: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a reference."""
    schema: dict[str, Any] = schemas[reference["$ref"].removeprefix(SCHEMAS)]
    return schema


def text(value: Any) -> Any:
    """Return the schema of an image, or of several, of which text is the only form."""
    match value:
        case {"oneOf": [{"type": "string"} as first, *_]}:
            return first
        case dict():
            return {name: text(one) for name, one in value.items()}
        case list():
            return [text(one) for one in value]
    return value


def least(schemas: dict[str, Any], value: Any) -> Any:
    """Return a schema in which each one that it refers to has what it needs alone."""
    match value:
        case {"$ref": str()}:
            whole = schema_of(schemas, value)
            needed = (*whole.get("required", ()), *NEEDED)
            kept = {name: option for name, option in whole["properties"].items() if name in needed}
            return whole | {"properties": least(schemas, kept)}
        case dict():
            return {name: least(schemas, one) for name, one in value.items()}
        case list():
            return [least(schemas, one) for one in value]
    return value


def unseen(schema: dict[str, Any], seen: set[str], kept: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the schema without the properties that are *seen*, by name and values, but those *kept*."""
    told = {name: allowed(name, option) for name, option in schema["properties"].items()}
    new = [name for name, option in told.items() if name in kept or option not in seen]
    seen.update(told.values())
    return schema | {"properties": {name: schema["properties"][name] for name in new}}


def allowed(name: str, option: dict[str, Any]) -> str:
    """Return the name of a property and what it may be, as text."""
    return json.dumps([name, {key: value for key, value in option.items() if key not in PROSE}])
