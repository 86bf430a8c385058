"""`scoregate evaluate alpha`: how well do raters agree?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import add_bootstrap, cluster_of
from scoregate.cli.evaluate.outcome import Outcome, add_ratings, outcome, ratings_of, scale_of

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "raters against each other: Krippendorff's alpha, and the share of extreme disagreement"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_ratings(parser)
    add_bootstrap(parser, 0)


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return alpha at the three levels."""
    from scoregate.evaluation import alpha
    from scoregate.evaluation.raters import LEVELS

    cluster = cluster_of(arguments, table, "unit", table.texts(arguments.unit))
    unit, rater, rating, together = ratings_of(arguments, table, [*cluster.cells])
    found = alpha(
        unit,
        rater,
        rating,
        scale=scale_of(arguments),
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
        cluster=together,
    )

    def draw(axes: Any) -> None:
        axes.bar(LEVELS, [getattr(found, level) or 0 for level in LEVELS], color="lightsteelblue")
        for level, ends in (found.intervals or {}).items():
            axes.plot([level, level], ends, color="black", marker="_")
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_ylabel("Krippendorff's alpha")
        axes.set_title(f"{found.units} units, {found.raters} raters")

    drawn = {"cluster": cluster.name if arguments.bootstrap else None}
    return outcome(table, draw, found, drawn)
