"""`scoregate evaluate ordering`: which generator is significantly better?"""

import argparse
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import (
    Outcome,
    add_columns,
    add_lower,
    add_scale,
    add_table,
    outcome,
    scale_of,
    share,
)
from scoregate.cli.evaluate.outcome import label as shown

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "generators against each other: Wilcoxon's signed-rank test for every pair (Gecko)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    columns = {
        "value": "the scores or ratings; several of an item are averaged",
        "model": "the generator",
        "item": "what generators share, such as the prompt",
    }
    add_columns(parser, columns)
    add_scale(parser)
    add = parser.add_argument
    add("--alpha", type=share, default=0.001, metavar="A", help="significant below it (default 0.001)")
    add("--zero-method", choices=["wilcox", "pratt"], default="wilcox", help="for equal values")
    what = "of two that differ, the one with the larger sum of ranks (default), or mean, as in Gecko"
    add("--better", choices=["ranks", "means"], default="ranks", help=what)
    add(
        "--human",
        metavar="COLUMN",
        help="people's ratings, to compare relations with; --scale is theirs then",
    )


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the relation of every pair, and the order by mean."""
    from scoregate.evaluation import ordering

    columns: list[Any] = [table.worth(arguments.value, lower=arguments.lower_is_better)]
    columns += [table.texts(arguments.model), table.texts(arguments.item)]
    columns += [table.numbers(arguments.human)] if arguments.human else []
    value, model, item, *human = table.complete(*columns)
    found = ordering(
        value,
        model,
        item,
        scale=scale_of(arguments),
        alpha=arguments.alpha,
        zero_method=arguments.zero_method,
        better=arguments.better,
        human=human[0] if human else None,
    )

    def draw(axes: Any) -> None:
        sign = {">": 1, "=": 0, "<": -1}
        known = {(pair.a, pair.b): sign[pair.relation] for pair in found.pairs}
        cells = [[known.get((a, b), -known.get((b, a), 0)) for b in found.order] for a in found.order]
        axes.imshow(cells, cmap="RdYlGn", vmin=-1, vmax=1)
        for row, line in enumerate(cells):
            for column, cell in enumerate(line):
                axes.text(column, row, "" if row == column else "<=>"[cell + 1], ha="center", va="center")
        names = [shown(name) for name in found.order]
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.set_title(f"{shown(arguments.value)}, p < {arguments.alpha:g}")

    return outcome(table, draw, found)
