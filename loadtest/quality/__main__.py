"""
`python -m loadtest.quality`: quality of a service's metrics, measured on semantic error graphs.

Draws prompts of the demo world with pictures of 0 to 3 errors, and scores them by every ready metric.
Prints rank and separation with 95 % intervals.  Without an address it starts the demo service.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

import httpx

from loadtest import servers
from loadtest.quality.graphs import Graph, graph
from loadtest.quality.meta import Estimate, Scored, estimate, rank, separation
from loadtest.quality.plot import plot
from loadtest.quality.scoring import GraphScores, scored, served

MEASURES: dict[str, Callable[[Sequence[Scored]], float]] = {
    "rank": rank,
    "separation of neighbours": partial(separation, apart=1),
    "separation": separation,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Print and plot the table; return 1 if no metric has figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a service that runs already; its demo models, or others")
    parser.add_argument("--metrics", nargs="+", help="by default all that are served")
    parser.add_argument("--graphs", type=int, default=20, help="prompts")
    parser.add_argument("--nodes", type=int, default=2, help="kinds of errors at each number of errors")
    parser.add_argument("--pictures", type=int, default=3, help="of each node")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, default=Path("build/quality.png"))
    given = parser.parse_args(argv)
    random = Random(f"quality-{given.seed}")
    graphs = [graph(random, given.nodes, given.pictures) for _ in range(given.graphs)]
    with service(given.url) as client:
        found = {name: scores_of(client, graphs, name) for name in given.metrics or served(client)}
    good = {name: each.graphs for name, each in found.items() if not each.failure}
    figures = {
        name: {measure: estimate(nodes, take, given.seed) for measure, take in MEASURES.items()}
        for name, nodes in good.items()
    }
    for line in table(figures, found, graphs):
        print(line)
    if not good:
        return 1
    plot(figures, good, given.plot)
    print(f"drawn: {given.plot}")
    return 0


@contextmanager
def service(address: str | None) -> Iterator[httpx.Client]:
    """Yield a client of the service at *address*, or of the demo service, which is stopped on exit."""
    if address:
        with httpx.Client(base_url=address, timeout=600) as client:
            yield client
        return
    with servers.demo() as server, server.client() as client:
        yield client


def scores_of(client: httpx.Client, graphs: Sequence[Graph], metric: str) -> GraphScores:
    """Return the scores of one metric, and print that they are complete."""
    total = sum(len(node.pictures) for graph in graphs for node in graph.nodes)
    found = scored(client, graphs, metric)
    print(f"{metric}: {found.failure or f'{total} pictures scored'}", file=sys.stderr, flush=True)
    return found


def table(
    figures: dict[str, dict[str, Estimate]], found: dict[str, GraphScores], graphs: Sequence[Graph]
) -> Iterator[str]:
    """Yield a line for each metric, the best rank first, failed ones last."""
    pictures = sum(len(node.pictures) for graph in graphs for node in graph.nodes)
    yield f"{len(graphs)} graphs, {pictures} pictures; mean and 95 % interval over graphs"
    yield f"{'metric':<12}" + "".join(f"{measure:>28}" for measure in MEASURES)
    for name, estimates in sorted(figures.items(), key=lambda entry: -entry[1]["rank"].value):
        cells = (f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})" for each in estimates.values())
        yield f"{name:<12}" + "".join(f"{cell:>28}" for cell in cells)
    for name, each in found.items():
        if each.failure:
            yield f"{name:<12}  no figures: {each.failure}"


if __name__ == "__main__":
    sys.exit(main())
