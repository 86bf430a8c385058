"""`scoregate evaluate auroc`: how well does a metric separate right pictures from wrong ones?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import add_bootstrap, cluster_of, drawings, rows
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

HELP = "right pictures against wrong ones: the area under the ROC curve"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    add_columns(parser, {"metric": "the scores"})
    add_bootstrap(parser)
    parser.add_argument(
        "--label",
        "--human",
        required=True,
        metavar="COLUMN",
        help="1 or true of a right picture, else 0 or false",
    )


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the area."""
    from scoregate.evaluation import auroc
    from scoregate.evaluation.agreement import auroc_sample as sample_of
    from scoregate.evaluation.agreement import roc

    cluster = cluster_of(arguments, table, "row", rows(table))
    metric, truth, together = table.complete(
        table.worth(arguments.metric, lower=arguments.lower_is_better),
        table.labels(arguments.label),
        [*cluster.cells],
    )
    found = auroc(metric, truth)
    drawn = drawings(arguments, sample_of(metric, truth, together))

    def draw(axes: Any) -> None:
        axes.plot(*roc(metric, truth))
        axes.plot([0, 1], [0, 1], color="grey", linestyle="--")
        axes.set_xlabel("false-accept rate")
        axes.set_ylabel("true-accept rate")
        axes.set_title(f"{label(arguments.metric)}, area {found.auroc:.4f}")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)
