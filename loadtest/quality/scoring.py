"""Scoring of graphs' pictures through the service."""

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import PIL.Image

from loadtest.quality.graphs import Graph
from loadtest.quality.meta import Scored
from models.images.image import lossless

ITEMS = 32  # in a request
TIMEOUT_MS = 600_000


@dataclass(frozen=True, slots=True)
class GraphScores:
    """
    The scores of one metric.

    Attributes:
        graphs: the scores of each graph, by node.
        failure: the first error, if a picture has no score.
    """

    graphs: Sequence[Sequence[Scored]]
    failure: str = ""


def served(client: httpx.Client) -> list[str]:
    """Return the names of the ready metrics."""
    answer = client.get("/models").raise_for_status().json()
    return [name for name, metric in answer["metrics"].items() if metric["ready"]]


def scored(
    client: httpx.Client, graphs: Sequence[Graph], metric: str, progress: Callable[[int], None]
) -> GraphScores:
    """
    Score every picture of *graphs* by one metric.

    A metric that fails for a picture has no figures, since they would not be comparable.

    Args:
        progress: callback with the number of scored pictures.
    """
    items = [
        item(graph.prompt, picture) for graph in graphs for node in graph.nodes for picture in node.pictures
    ]
    scores = list[float]()
    for start in range(0, len(items), ITEMS):
        body = {"items": items[start : start + ITEMS], "metrics": [metric], "timeout_ms": TIMEOUT_MS}
        for result in client.post("/score", json=body).raise_for_status().json()["results"]:
            if metric not in result["scores"]:
                error = result["errors"][metric]
                return GraphScores([], f"{error['code']}: {error['detail']}")
            scores.append(result["scores"][metric])
        progress(len(scores))
    left = iter(scores)
    return GraphScores([list(by_node(graph, left)) for graph in graphs])


def by_node(graph: Graph, scores: Iterator[float]) -> Iterator[Scored]:
    """Yield the scores of a graph's pictures by node."""
    for node in graph.nodes:
        yield Scored(len(node.errors), [next(scores) for _ in node.pictures])


def item(prompt: str, picture: PIL.Image.Image) -> dict[str, Any]:
    """Return a picture as an item of a request."""
    return {"prompt": prompt, "image": base64.b64encode(lossless(picture)).decode()}
