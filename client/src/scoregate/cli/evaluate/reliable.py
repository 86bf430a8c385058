"""`scoregate evaluate reliable`: the prompts that raters agree about (Gecko)."""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import (
    Outcome,
    add_columns,
    add_scale,
    add_table,
    label,
    outcome,
    scale_of,
    share,
)

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "the prompts that raters agree about, for every generator and template (Gecko)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser, "--ratings")
    columns = {"prompt": "the prompt, or its id", "model": "the generator", "rating": "the rating, a number"}
    add_columns(parser, columns)
    add = parser.add_argument
    add("--template", metavar="COLUMN", help="the wording of the question to raters, if there are several")
    add("--unit", metavar="COLUMN", help="the word or question that a rating is about")
    add("--threshold", type=share, default=0.5, help="of the largest disagreement (default 0.5)")
    add_scale(parser)


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the prompts, and what every generator and template keeps."""
    from scoregate.evaluation import reliable

    optional = {name: getattr(arguments, name) for name in ("template", "unit") if getattr(arguments, name)}
    columns = [table.texts(column) for column in (arguments.prompt, arguments.model, *optional.values())]
    rating, prompt, model, *more = table.complete(table.numbers(arguments.rating), *columns)
    found = reliable(
        prompt,
        model,
        rating,
        scale=scale_of(arguments),
        threshold=arguments.threshold,
        **dict(zip(optional, more, strict=True)),
    )

    def draw(axes: Any) -> None:
        names = [label(" ".join(filter(None, (part.model, part.template)))) for part in found.parts]
        axes.barh([*names, "all"], [*(part.reliable for part in found.parts), found.reliable])
        axes.set_xlim(0, found.prompts)
        axes.set_xlabel(f"reliable of {found.prompts} prompts")

    return outcome(table, draw, found)
