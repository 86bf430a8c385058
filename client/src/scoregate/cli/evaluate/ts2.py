"""`scoregate evaluate ts2`: does a metric fall with each known error (T2IscoreScore)?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import Outcome, add_columns, add_lower, add_table, label, outcome

if TYPE_CHECKING:
    from scoregate.evaluation import Table

VERSIONS = ("released", "printed", "current")
HELP = "a metric on graphs of pictures with known errors (T2IscoreScore): rank, separation, delta"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    add_columns(
        parser,
        {
            "metric": "the scores",
            "graph": "the graph, one for each prompt",
            "node": "the node; its first digits say how many errors",
        },
    )
    add_version(parser, required=True)


def add_version(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Declare which of the authors' definitions to use, and the graphs to skip."""
    what = "the code of the paper's tables (also: paper), its equations, or the code today"
    parser.add_argument("--version", type=version, choices=VERSIONS, help=what, **more)
    what = "leave it out of the means, not of std; may be given several times (the paper: 164)"
    parser.add_argument("--skip-graph", action="append", metavar="GRAPH", help=what)


def version(text: str) -> str:
    return "released" if text == "paper" else text


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the figures of all graphs, and of the parts of the released data."""
    from scoregate.evaluation import ts2

    scores = table.worth(arguments.metric, lower=arguments.lower_is_better)
    graphs, nodes = table.names(arguments.graph), table.names(arguments.node)
    found = ts2(scores, graphs, nodes, arguments.version, arguments.skip_graph or ())

    def draw(axes: Any) -> None:
        parts: dict[str, Any] = {"all": vars(found)} | found.partitions
        for place, name in enumerate(("rank", "sep", "delta")):
            at = [number + place / 4 for number in range(len(parts))]
            axes.bar(at, [part[name] for part in parts.values()], width=0.25, label=name)
        axes.set_xticks([number + 0.25 for number in range(len(parts))], list(parts))
        axes.set_title(label(arguments.metric))
        axes.legend()

    return outcome(table, draw, found)
