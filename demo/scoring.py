"""Scores of the sample pictures, each with its right and its wrong prompt, by a running service."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from demo.process import Failed, progress
from demo.samples import FOLDER, listed

PROMPT_METRICS = {"vqascore": "VQAScore", "clipscore": "CLIPScore", "dsg": "DSG"}
METRICS = PROMPT_METRICS | {"geneval": "GenEval"}  # GenEval scores only prompts with metadata
TIMEOUT_S = 300
SIDES = ("right", "wrong")


@dataclass(frozen=True, slots=True)
class Judged:
    """
    The service's results for a picture and a prompt.

    Attributes:
        scores, errors: by metric; neither for a metric that was not requested.
        questions: of DSG.
        found: the details of GenEval, with the objects in the picture; empty without.
    """

    prompt: str
    scores: Mapping[str, float]
    errors: Mapping[str, str]
    questions: Sequence[Mapping[str, Any]]
    found: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """A picture with a prompt that is right for it and one that is wrong."""

    file: str
    image: bytes
    right: Judged
    wrong: Judged

    def requested(self, metric: str) -> bool:
        """Return True if the metric was requested for it."""
        return metric in self.right.scores or metric in self.right.errors

    def distinguishes(self, metric: str) -> bool:
        """Return True if the right prompt scored above the wrong one; False if a score is missing."""
        right, wrong = self.right.scores.get(metric), self.wrong.scores.get(metric)
        return right is not None and wrong is not None and right > wrong


def scored(client: httpx.Client) -> list[Pair]:
    """Score every sample picture with both of its prompts; by GenEval only those that it supports."""
    samples = listed()
    images = {sample["file"]: (FOLDER / sample["file"]).read_bytes() for sample in samples}
    items = [as_item(sample, which) for sample in samples for which in SIDES]
    described = [item for item in items if "options" in item]
    progress(f"scoring {len(samples)} pictures against two prompts each")
    results = posted(client, request_of(items, list(PROMPT_METRICS)), images)
    found = iter(posted(client, request_of(described, ["geneval"]), images))
    progress("")
    judgements = iter(
        judged(item["prompt"], result, next(found) if "options" in item else {})
        for item, result in zip(items, results, strict=True)
    )
    return [
        Pair(sample["file"], images[sample["file"]], next(judgements), next(judgements)) for sample in samples
    ]


def as_item(sample: Mapping[str, Any], which: str) -> dict[str, Any]:
    """Return a picture with one of its prompts, and its GenEval metadata if there are any."""
    item = {"prompt": sample[which], "image": {"part": sample["file"]}}
    metadata = sample["geneval"].get(which)
    return {**item, "options": {"geneval": metadata}} if metadata else item


def request_of(items: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> dict[str, Any]:
    """Return the body of `POST /score`."""
    return {"items": items, "metrics": metrics, "timeout_ms": TIMEOUT_S * 1000, "explain": True}


def posted(client: httpx.Client, request: dict[str, Any], images: dict[str, bytes]) -> list[dict[str, Any]]:
    """Return the results of `POST /score`, pictures as file parts.  Raises `Failed` for other responses."""
    files = {name: (name, data) for name, data in images.items()}
    try:
        answer = client.post("/score", data={"request": json.dumps(request)}, files=files)
    except httpx.TransportError as exc:
        raise Failed(f"POST /score got no answer: {exc!r}") from exc
    if answer.status_code != 200:
        raise Failed(f"POST /score returned status {answer.status_code}: {answer.text}")
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def judged(prompt: str, result: Mapping[str, Any], found: Mapping[str, Any]) -> Judged:
    """Return the results of one picture and prompt; *found*: by GenEval."""
    scores = {**result["scores"], **found.get("scores", {})}
    errors = {**result.get("errors", {}), **found.get("errors", {})}
    questions = result.get("details", {}).get("dsg", {}).get("questions", [])
    return Judged(
        prompt,
        scores,
        {metric: error["detail"] for metric, error in errors.items()},
        questions,
        found.get("details", {}).get("geneval", {}),
    )
