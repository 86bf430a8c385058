"""`scoregate evaluate means`: the mean score of each generator; with `--by SKILL` a matrix of both."""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import Outcome, add_columns, add_table, label

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "the mean score of each generator; by skill with --by"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_columns(parser, {"metric": "the scores"})
    parser.add_argument("--model", required=True, metavar="COLUMN", help="the generator")


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the means; lower scores stay as they are."""
    from statistics import fmean

    from scoregate.evaluation import BadColumn

    scores, models = table.complete(table.numbers(arguments.metric), table.texts(arguments.model))
    if not len(scores):
        raise BadColumn("metric", "no row has a score and a generator")
    found: dict[str, list[float]] = {}
    for score, model in zip(scores, models, strict=True):
        found.setdefault(model, []).append(float(score))
    means = {model: fmean(found[model]) for model in sorted(found)}

    def draw(axes: Any) -> None:
        axes.bar([label(model) for model in means], [*means.values()], color="lightsteelblue")
        axes.set_ylabel(f"mean {label(arguments.metric)}")

    return Outcome({"mean": means, "pictures": len(scores), "dropped": table.dropped}, draw)
