"""The sample pictures' scores, asked of a service that runs."""

import json
from typing import Any

import httpx

from demo.pairs import METRICS, Judged, Pair
from demo.process import Failed
from demo.progress import progress
from demo.samples import FOLDER, listed

TIMEOUT_S = 300


def scored(client: httpx.Client) -> list[Pair]:
    """Every sample picture against both of its prompts, in one request."""
    samples = listed()
    pictures = {sample["file"]: (FOLDER / sample["file"]).read_bytes() for sample in samples}
    request = {
        "items": [
            {"prompt": sample[which], "image": {"part": sample["file"]}}
            for sample in samples
            for which in ("right", "wrong")
        ],
        "metrics": list(METRICS),
        "timeout_ms": TIMEOUT_S * 1000,
        "explain": True,
    }
    progress(f"scoring {len(samples)} pictures against two prompts each")
    results = iter(posted(client, request, pictures))
    progress("")
    return [
        Pair(
            sample["file"],
            pictures[sample["file"]],
            judged(sample["right"], next(results)),
            judged(sample["wrong"], next(results)),
        )
        for sample in samples
    ]


def posted(client: httpx.Client, request: dict[str, Any], pictures: dict[str, bytes]) -> list[dict[str, Any]]:
    """The results of `POST /score`, pictures as file parts.  Raises `Failed` for any other answer."""
    files = {name: (name, data) for name, data in pictures.items()}
    try:
        answer = client.post("/score", data={"request": json.dumps(request)}, files=files)
    except httpx.TransportError as exc:
        raise Failed(f"POST /score got no answer: {exc!r}") from exc
    if answer.status_code != 200:
        raise Failed(f"POST /score returned status {answer.status_code}: {answer.text}")
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def judged(prompt: str, result: dict[str, Any]) -> Judged:
    """What the service says of one picture and prompt."""
    details = result.get("details", {}).get("dsg", {})
    errors = {metric: error["detail"] for metric, error in result.get("errors", {}).items()}
    return Judged(prompt, result["scores"], errors, details.get("questions", []))
