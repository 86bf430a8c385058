"""The document of our API with the options of all metrics at one place."""

from copy import deepcopy
from typing import Any

ONE = "dsg"  # the metric that keeps its options everywhere: those have all forms that options have


def options_once(document: dict[str, Any]) -> None:
    """
    Keep all options in the JSON of `POST /score`, and one metric's in its items, in forms and elsewhere.

    Schemathesis tries each boundary at each of these eight places, and one model reads them all.
    """
    schemas = document["components"]["schemas"]
    every, scoring = schemas["Options"], deepcopy(schemas["ScoreRequest"])
    schemas["EveryOption"] = every
    schemas["Options"] = every | {"properties": {ONE: every["properties"][ONE]}}
    for name in ("ScoreRequest", "RankRequest", "CompareRequest", "QuestionsRequest"):
        del schemas[name]["properties"]["options"]["default"]  # it has other metrics' options
    scoring["properties"]["options"]["$ref"] = "#/components/schemas/EveryOption"
    body = document["paths"]["/score"]["post"]["requestBody"]
    body["content"]["application/json"]["schema"] = scoring
