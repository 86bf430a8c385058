"""`scoregate evaluate agreement`: does a metric agree with people's ratings?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import (
    Outcome,
    add_bootstrap,
    add_columns,
    add_lower,
    add_table,
    drawings,
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


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the figures of correlation and of pairs."""
    import numpy as np

    from scoregate.evaluation import correlation, pair_accuracy
    from scoregate.evaluation.arrays import Codes, coded

    columns = [table.worth(arguments.metric, lower=arguments.lower_is_better), table.numbers(arguments.human)]
    group = [table.texts(arguments.group)] if arguments.group else []
    metric, human, *groups = table.complete(*columns, *group)
    of_pairs = pair_accuracy(metric, human, groups[0] if groups else None)

    def correlations(rows: Codes) -> dict[str, float]:
        found = correlation(metric[rows], human[rows])
        return {"pearson": found.pearson, "spearman": found.spearman, "kendall": found.kendall}

    units = coded(groups[0])[1] if groups else np.arange(len(metric))
    drawn = drawings(arguments, correlations, units)

    def draw(axes: Any) -> None:
        axes.scatter(metric, human, s=8, alpha=0.4)
        axes.set_xlabel(label(arguments.metric))
        axes.set_ylabel(label(arguments.human))
        axes.set_title(f"pairwise accuracy {of_pairs.accuracy:.4f}")

    return outcome(table, draw, correlation(metric, human), of_pairs, drawn=drawn)
