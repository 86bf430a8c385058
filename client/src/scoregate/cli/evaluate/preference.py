"""`scoregate evaluate preference`: does a metric prefer the picture that people prefer?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import (
    Cluster,
    add_bootstrap,
    cluster_of,
    drawings,
    rows,
)
from scoregate.cli.evaluate.outcome import (
    Outcome,
    add_columns,
    add_lower,
    add_table,
    label,
    outcome,
)

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "pairs of pictures: the share in which a metric prefers what people prefer (binary accuracy)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    columns = {
        "metric": "the scores",
        "human": "a number that is larger for the picture that people prefer",
        "group": "the pictures to compare with each other, such as those of one prompt",
    }
    add_columns(parser, columns)
    add_bootstrap(parser)
    what = "accuracy of all pairs (default), or the mean over groups"
    parser.add_argument("--average", choices=["pairs", "groups"], default="pairs", help=what)


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the share."""
    from scoregate.evaluation import preference
    from scoregate.evaluation.pairs import preferences

    numbers = table.worth(arguments.metric, lower=arguments.lower_is_better), table.numbers(arguments.human)
    groups = table.texts(arguments.group)
    cluster = cluster_of(arguments, table, "row", rows(table))
    if cluster.name == "row":
        cluster = Cluster(arguments.group, groups)
    metric, human, group, together = table.complete(*numbers, groups, [*cluster.cells])
    found = preference(metric, human, group, average=arguments.average)
    sample = preferences(metric, human, group, cluster=together, average=arguments.average)
    drawn = drawings(arguments, sample)

    def draw(axes: Any) -> None:
        axes.bar(["correct", "tied", "wrong"], [found.correct, found.ties_metric, found.wrong])
        axes.set_ylabel("pairs")
        axes.set_title(f"{label(arguments.metric)}, accuracy {found.accuracy:.4f}")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)
