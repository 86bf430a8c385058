"""A service that does what its script says, request by request, and then what a service does."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import httpx2 as httpx

from tests.support.pauses import Unpaused

Step = Callable[[dict[str, Any], httpx.Request], httpx.Response] | None


class Scripted:
    """
    Scores each item with the number that its prompt is.

    Attributes:
        requests: what was asked, one dict for each request.
        sizes: the bytes of each body.
        metrics: what `GET /models` says of them; None if nobody listens to that.
    """

    def __init__(self, script: Sequence[Step]) -> None:
        self._script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.sizes: list[int] = []
        self.metrics: dict[str, Any] | None = {"vqascore": {"direction": "higher is better"}}
        self.transport = Unpaused(self.answer)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/models":
            if self.metrics is None:
                gone({}, request)
            return httpx.Response(200, json={"models": [], "metrics": self.metrics})
        asked = json.loads(re.search(rb"\r\n\r\n(\{.*?\})\r\n--", request.content, re.DOTALL)[1])
        self.requests.append(asked)
        self.sizes.append(len(request.content))
        step = self._script.pop(0) if self._script else None
        return (step or scored)(asked, request)


def scored(asked: dict[str, Any], request: httpx.Request) -> httpx.Response:
    """Every item has its score."""
    return answer(asked)


def answer(asked: dict[str, Any], errors: Mapping[str, str] = MappingProxyType({})) -> httpx.Response:
    """The answer to what was asked, where *errors* are codes by prompt."""
    metric = asked["metrics"][0]
    results = []
    for index, item in enumerate(asked["items"]):
        code = errors.get(item["prompt"])
        entry = {"errors": {metric: {"code": code, "detail": "as told"}}} if code else {}
        scores = {} if code else {metric: float(item["prompt"])}
        results.append({"index": index, "scores": scores, **entry})
    return httpx.Response(
        200, json={"request_id": "r", "results": results, "partial": bool(errors), "models": {}}
    )


def scoring(*scores: str | None) -> Step:
    """A step whose answer has these scores, whatever the prompts; a picture without one is broken."""

    def step(asked: dict[str, Any], request: httpx.Request) -> httpx.Response:
        told = [{**item, "prompt": str(score)} for item, score in zip(asked["items"], scores, strict=True)]
        return answer({**asked, "items": told}, {"None": "image_undecodable"})

    return step


def failing(**errors: str) -> Step:
    """A step whose answer lacks the scores of some prompts."""
    return lambda asked, request: answer(asked, errors)


def refusing(status: int, code: str, *pointers: str, **headers: str) -> Step:
    """A step that refuses the whole request."""
    faults = [{"pointer": pointer, "code": "value_error", "detail": "is wrong"} for pointer in pointers]
    problem = {"status": status, "code": code, "detail": "as told", "errors": faults}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda asked, request: httpx.Response(status, json=problem, headers=named)


def paged(status: int) -> Step:
    """A step in which a proxy answers with a page of its own."""
    return lambda asked, request: httpx.Response(status, text="<html>no healthy upstream</html>")


def gone(asked: dict[str, Any], request: httpx.Request) -> httpx.Response:
    """Nobody listens."""
    raise httpx.ConnectError("connection refused", request=request)


def at_most(limit: int) -> Step:
    """A step that takes no more than *limit* items, as long as it is asked."""

    def step(asked: dict[str, Any], request: httpx.Request) -> httpx.Response:
        if len(asked["items"]) > limit:
            return refusing(413, "too_large")(asked, request)
        return scored(asked, request)

    return step
