"""`scoregate evaluate winoground`: which of two captions belongs to which of two pictures?"""

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import add_bootstrap, cluster_of, drawings
from scoregate.cli.evaluate.outcome import Outcome, add_columns, add_lower, add_table, label, outcome

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "two captions and two pictures: Winoground's text, image and group score"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_bootstrap(parser)
    add_lower(parser)
    add_columns(parser, {"metric": "the scores, four for each item", "item": "the item"})
    for name, what in (("caption", "the caption"), ("image", "the picture")):
        parser.add_argument(
            f"--{name}", default=name, metavar="COLUMN", help=f"{what}, 0 or 1 (default {name})"
        )


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the three shares."""
    from scoregate.evaluation import winoground
    from scoregate.evaluation.winoground import CHANCE, choices, sample_of

    texts = [table.texts(column) for column in (arguments.item, arguments.caption, arguments.image)]
    scores = table.worth(arguments.metric, lower=arguments.lower_is_better)
    cluster = cluster_of(arguments, table, "item", texts[0])
    left_out = replace(table, records=[*table.incomplete])
    every = {*texts[0], *(left_out.texts(arguments.item) if left_out.records else ())} - {None}
    metric, item, caption, image, together = table.complete(scores, *texts, [*cluster.cells])
    found = winoground(metric, item, caption, image)
    found = replace(found, incomplete=len(every) - found.items)
    of_item = dict(zip(item, together, strict=True))
    drawn = drawings(arguments, sample_of(choices(metric, item, caption, image), of_item))

    def draw(axes: Any) -> None:
        axes.bar(list(CHANCE), [getattr(found, name) for name in CHANCE])
        for place, chance in enumerate(CHANCE.values()):
            dots = {"color": "black", "linestyle": "--"}
            axes.plot(
                [place - 0.4, place + 0.4], [chance, chance], label="chance" if not place else None, **dots
            )
        axes.set_ylim(0, 1)
        axes.set_title(f"{label(arguments.metric)}, {found.items} items")
        axes.legend()

    size = found.items, "item"
    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name, size=size)
