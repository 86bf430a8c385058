"""What a service answers, for clients whose service is a function."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx2 as httpx


def request_of(request: httpx.Request) -> dict[str, Any]:
    """The JSON of a form's part `request`."""
    boundary = request.headers["content-type"].partition("boundary=")[2].encode()
    part = request.content.split(b"--" + boundary)[1]
    found: dict[str, Any] = json.loads(part.split(b"\r\n\r\n", 1)[1])
    return found


def scored(
    request: httpx.Request, score: float = 0.5, entry: Mapping[str, Any] = MappingProxyType({}), **more: Any
) -> httpx.Response:
    """One score under every metric for every item that is asked about; *entry* is in each result."""
    asked = request_of(request)
    results = [
        {
            "index": index,
            "id": item.get("id"),
            "scores": dict.fromkeys(item.get("metrics", asked["metrics"]), score),
            **entry,
        }
        for index, item in enumerate(asked["items"])
    ]
    content = {"request_id": "r", "results": results, "partial": False, "models": {}, "timings_ms": {}}
    return httpx.Response(200, json=content | more)


def numbered(request: httpx.Request) -> httpx.Response:
    """The number of each prompt as its score."""
    results = [
        {"index": index, "scores": {"vqascore": float(item["prompt"].rpartition(" ")[2])}}
        for index, item in enumerate(request_of(request)["items"])
    ]
    return scored(request, results=results)


def problem(status: int, code: str, **more: Any) -> httpx.Response:
    """A refusal in the service's form."""
    return httpx.Response(status, json={"code": code, "detail": f"it is {code}", "request_id": "r"} | more)
