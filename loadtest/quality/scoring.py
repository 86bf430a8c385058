"""The pictures of graphs, scored through the service."""

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
    What came of one metric.

    Attributes:
        graphs: the scores of each graph, by node.
        failure: the first error, where not every picture has a score.
    """

    graphs: Sequence[Sequence[Scored]]
    failure: str = ""


def served(client: httpx.Client) -> list[str]:
    """The metrics that the service can score now."""
    answer = client.get("/models").raise_for_status().json()
    return [name for name, metric in answer["metrics"].items() if metric["ready"]]


def scored(client: httpx.Client, graphs: Sequence[Graph], metric: str, tell: Callable[[int], None]) -> GraphScores:
    """
    Every picture of *graphs*, by one metric.

    A metric that fails at a picture has no figures: those without it would not be comparable.

    Args:
        tell: called with the number of pictures that have been scored.
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
        tell(len(scores))
    left = iter(scores)
    return GraphScores([list(by_node(graph, left)) for graph in graphs])


def by_node(graph: Graph, scores: Iterator[float]) -> Iterator[Scored]:
    """The scores of a graph's pictures, in order, by node."""
    for node in graph.nodes:
        yield Scored(len(node.errors), [next(scores) for _ in node.pictures])


def item(prompt: str, picture: PIL.Image.Image) -> dict[str, Any]:
    """A picture as a request carries it."""
    return {"prompt": prompt, "image": base64.b64encode(lossless(picture)).decode()}
