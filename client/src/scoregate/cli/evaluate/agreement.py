"""`scoregate evaluate agreement`: does a metric agree with people's ratings?"""

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

HELP = "a metric against people's ratings: correlation, and pairwise accuracy with tie calibration"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    add_columns(parser, {"metric": "the scores", "human": "people's ratings"})
    add_bootstrap(parser)
    parser.add_argument("--group", metavar="COLUMN", help="compare only pairs within it, such as the prompt")
    what = "accuracy with --group: the mean over groups, as in the paper (default), or of all their pairs"
    parser.add_argument("--average", choices=["groups", "pairs"], default="groups", help=what)


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the figures of correlation and of pairs."""
    from scoregate.evaluation import correlation, pair_accuracy
    from scoregate.evaluation.agreement import correlation_sample as sample_of
    from scoregate.evaluation.bootstrap import together
    from scoregate.evaluation.pairs import MOST, pair_accuracies

    columns = [table.worth(arguments.metric, lower=arguments.lower_is_better), table.numbers(arguments.human)]
    group = [table.texts(arguments.group)] if arguments.group else []
    cluster = cluster_of(arguments, table, "row", rows(table))
    if cluster.name == "row" and arguments.group:
        cluster = Cluster(arguments.group, group[0])
    metric, human, drawn_by, *groups = table.complete(*columns, [*cluster.cells], *group)
    grouped = groups[0] if groups else None
    of_pairs = pair_accuracy(metric, human, grouped, average=arguments.average)

    few = of_pairs.pairs <= MOST
    sample = sample_of(metric, human, drawn_by)
    if arguments.bootstrap and few:
        pairs = pair_accuracies(metric, human, grouped, cluster=drawn_by, average=arguments.average)
        sample = together(sample, pairs)
    drawn = drawings(arguments, sample)

    def draw(axes: Any) -> None:
        axes.scatter(metric, human, s=8, alpha=0.4)
        axes.set_xlabel(label(arguments.metric))
        axes.set_ylabel(label(arguments.human))
        axes.set_title(f"pairwise accuracy {of_pairs.accuracy:.4f}")

    found = outcome(table, draw, correlation(metric, human), of_pairs, drawn=drawn, cluster=cluster.name)
    if drawn and not few:
        found.content["no_interval"] = f"of accuracy: {of_pairs.pairs:,} pairs, more than {MOST:,}"
    return found
