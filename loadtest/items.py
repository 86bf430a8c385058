"""Items of requests, and their scores."""

import base64
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import httpx

TIMEOUT_MS = 600_000

Item = dict[str, Any]


def item(prompt: str, picture: bytes, **more: Any) -> Item:
    """Return an item with its encoded picture in base64."""
    return {"prompt": prompt, "image": base64.b64encode(picture).decode(), **more}


def batched(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Split *items* into requests."""
    return (items[start : start + size] for start in range(0, len(items), size))


def results(client: httpx.Client, items: Sequence[Item], metric: str, size: int) -> Iterator[dict[str, Any]]:
    """Yield the results of *items* by one metric, in requests of *size*; show progress on a terminal."""
    for number, part in enumerate(batched(items, size)):
        body = {"items": part, "metrics": [metric], "timeout_ms": TIMEOUT_MS}
        yield from client.post("/score", json=body).raise_for_status().json()["results"]
        if sys.stderr.isatty():
            done = number * size + len(part)
            print(f"\r{metric}: {done}/{len(items)}\033[K\r", end="", file=sys.stderr, flush=True)


def served(client: httpx.Client) -> list[str]:
    """Return the names of the ready metrics."""
    answer = client.get("/models").raise_for_status().json()
    return [name for name, metric in answer["metrics"].items() if metric["ready"]]
