"""`scoregate evaluate convergence`: how many raters are enough?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.arguments import whole
from scoregate.cli.evaluate.outcome import Outcome, add_ratings, count, outcome, ratings_of, scale_of

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "how many raters are enough: alpha, and the generators' order, from every number of them"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_ratings(parser)
    add = parser.add_argument
    add("--model", metavar="COLUMN", help="the generator of each unit: compare the generators' order, too")
    add("--level", choices=["nominal", "ordinal", "interval"], default="interval", help="default interval")
    add("--samples", type=whole, default=50, metavar="N", help="subsets of each size (default 50)")
    add("--seed", type=count, default=0, help="of the subsets (default 0)")


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return mean and band for each number of raters."""
    from scoregate.evaluation import convergence

    more = [table.texts(arguments.model)] if arguments.model else []
    unit, rater, rating, *model = ratings_of(arguments, table, *more)
    found = convergence(
        unit,
        rater,
        rating,
        model=model[0] if model else None,
        level=arguments.level,
        scale=scale_of(arguments),
        samples=arguments.samples,
        seed=arguments.seed,
    )

    def draw(axes: Any) -> None:
        steps = [step for step in found.steps if step.mean is not None]
        at = [step.k for step in steps]
        axes.plot(at, [step.mean for step in steps], marker="o")
        axes.fill_between(at, [step.low for step in steps], [step.high for step in steps], alpha=0.3)
        axes.set_xticks(at)
        axes.set_xlabel("raters")
        axes.set_ylabel(f"alpha, {found.level}")

    return outcome(table, draw, found)
