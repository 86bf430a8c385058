"""Scoring of graphs' pictures through the service."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import httpx

from loadtest.items import item, results
from loadtest.quality.graphs import Graph
from loadtest.quality.meta import Scored
from models.images.image import lossless

ITEMS = 32  # in a request


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


def scored(client: httpx.Client, graphs: Sequence[Graph], metric: str) -> GraphScores:
    """
    Score every picture of *graphs* by one metric.

    A metric that fails for a picture has no figures, since they would not be comparable.
    """
    items = [
        item(graph.prompt, lossless(picture))
        for graph in graphs
        for node in graph.nodes
        for picture in node.pictures
    ]
    scores = list[float]()
    for result in results(client, items, metric, ITEMS):
        if metric not in result["scores"]:
            error = result["errors"][metric]
            return GraphScores([], f"{error['code']}: {error['detail']}")
        scores.append(result["scores"][metric])
    remaining = iter(scores)
    return GraphScores([list(by_node(graph, remaining)) for graph in graphs])


def by_node(graph: Graph, scores: Iterator[float]) -> Iterator[Scored]:
    """Yield the scores of a graph's pictures by node."""
    for node in graph.nodes:
        yield Scored(len(node.errors), [next(scores) for _ in node.pictures])
