"""The command against a service that is a function: what it answers is written down in the test."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2 as httpx

from tests.support.answers import problem, request_of, scored

ROWS = 40  # of a data set: three requests of `batch`


class Service:
    """
    Scores everything alike, by a model that may be replaced and with warnings.

    Attributes:
        labels: of each answer; the last one stays.
        more: of each answer.
        metrics: what `GET /models` says of each.
        facts: what `GET /models` says besides.
        document: of OpenAPI.
        score, entry: of each result.
        sets: what `GET /questions/{id}` returns, by id.
        sent: the requests for scores.
    """

    def __init__(self, *labels: str, metrics: Mapping[str, Any], **more: Any) -> None:
        self.labels, self.metrics, self.more = list(labels), metrics, more
        self.facts: dict[str, Any] = {}
        self.document: dict[str, Any] = {"info": {"version": "1"}}
        self.score, self.entry = 0.5, dict[str, Any]()
        self.sets: dict[str, Any] = {}
        self.sent: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/models":
            id, _, revision = self.labels[0].partition("@")
            model = {
                "name": "vqa",
                "role": "vqa",
                "device": "cpu",
                "id": id,
                "revision": revision,
                "ready": True,
            }
            return httpx.Response(200, json={"models": [model], "metrics": self.metrics} | self.facts)
        if request.url.path in ("/readyz", "/openapi.json"):
            return httpx.Response(200, json=self.document)
        if request.url.path.startswith("/questions/"):
            found = self.sets.get(request.url.path.removeprefix("/questions/"))
            return httpx.Response(200, json=found) if found else problem(404, "unknown_question_set")
        self.sent.append(request_of(request))
        label = self.labels.pop(0) if len(self.labels) > 1 else self.labels[0]
        answer = {"models": {"vqa": label}, **self.more}
        if request.url.path == "/rank":
            return httpx.Response(200, json=ranked(self.sent[-1]) | answer)
        return scored(request, self.score, self.entry, **answer)


class Numbered(Service):
    """Scores each prompt by every metric with the number that it ends in."""

    def __call__(self, request: httpx.Request) -> httpx.Response:
        answer = super().__call__(request)
        content = answer.json()
        if "results" in content:
            for result, item in zip(content["results"], self.sent[-1]["items"], strict=True):
                number = float(item["prompt"].rpartition(" ")[2])
                result["scores"] = dict.fromkeys(result["scores"], number)
        return httpx.Response(answer.status_code, json=content)


def ranked(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A ranking in the order of the pictures."""
    entries = [{"index": n, "score": 0.5, "accepted": True} for n in range(len(asked["images"]))]
    return {"ranking": entries}


def metric(direction: str = "higher is better") -> dict[str, Any]:
    """An entry of `GET /models`."""
    return {"models": ["vqa"], "uses": [], "direction": direction, "ready": True}


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of results."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
