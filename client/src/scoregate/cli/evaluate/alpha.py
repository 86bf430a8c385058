"""`scoregate evaluate alpha`: how well do raters agree?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import Outcome, add_ratings, count, outcome, ratings_of, scale_of

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "raters against each other: Krippendorff's alpha, and the share of extreme disagreement"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_ratings(parser)
    add = parser.add_argument
    add("--bootstrap", type=count, default=0, metavar="N", help="95 %% intervals from N drawings of units")
    add("--seed", type=count, default=0, help="of the drawings (default 0)")


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return alpha at the three levels."""
    from scoregate.evaluation import alpha
    from scoregate.evaluation.alpha import LEVELS

    unit, rater, rating = ratings_of(arguments, table)
    found = alpha(
        unit, rater, rating, scale=scale_of(arguments), bootstrap=arguments.bootstrap, seed=arguments.seed
    )

    def draw(axes: Any) -> None:
        axes.bar(LEVELS, [getattr(found, level) or 0 for level in LEVELS], color="lightsteelblue")
        for level, ends in (found.intervals or {}).items():
            axes.plot([level, level], ends, color="black", marker="_")
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_ylabel("Krippendorff's alpha")
        axes.set_title(f"{found.units} units, {found.raters} raters")

    return outcome(table, draw, found)
