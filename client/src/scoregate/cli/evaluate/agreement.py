"""`scoregate evaluate agreement`: does a metric agree with people's ratings?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import add_bootstrap, drawings
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


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the figures of correlation and of pairs."""
    import numpy as np

    from scoregate.evaluation import correlation, pair_accuracy
    from scoregate.evaluation.arrays import Codes, coded
    from scoregate.evaluation.bootstrap import Sample
    from scoregate.evaluation.drawn_pairs import MOST, pair_accuracies

    columns = [table.worth(arguments.metric, lower=arguments.lower_is_better), table.numbers(arguments.human)]
    group = [table.texts(arguments.group)] if arguments.group else []
    metric, human, *groups = table.complete(*columns, *group)
    grouped = groups[0] if groups else None
    of_pairs = pair_accuracy(metric, human, grouped)

    units = np.arange(len(metric)) if grouped is None else coded(grouped)[1]
    few = of_pairs.pairs <= MOST
    accuracies = pair_accuracies(metric, human, grouped) if arguments.bootstrap and few else None

    def figures(times: Codes) -> dict[str, float]:
        rows = np.repeat(np.arange(len(metric)), times[units])
        found = correlation(metric[rows], human[rows])
        of_rows = {"pearson": found.pearson, "spearman": found.spearman, "kendall": found.kendall}
        return of_rows | (accuracies(times) if accuracies else {})

    drawn = drawings(arguments, Sample(int(units.max()) + 1, figures))

    def draw(axes: Any) -> None:
        axes.scatter(metric, human, s=8, alpha=0.4)
        axes.set_xlabel(label(arguments.metric))
        axes.set_ylabel(label(arguments.human))
        axes.set_title(f"pairwise accuracy {of_pairs.accuracy:.4f}")

    found = outcome(table, draw, correlation(metric, human), of_pairs, drawn=drawn)
    if drawn and not few:
        found.content["no_interval"] = f"of accuracy: {of_pairs.pairs:,} pairs, more than {MOST:,}"
    return found
