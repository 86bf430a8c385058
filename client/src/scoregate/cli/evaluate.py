"""
`scoregate evaluate`: how far to trust scores, by figures from tables of scores and ratings.

Tables of scores and ratings are read without a service.

* **Intervals.** `--bootstrap N` (default 1000, for `alpha` and `means` 0; 0: off) adds `interval`, 95 %
  percentile intervals, and `differences`, those of metric A minus B on the same drawings with two-sided
  p-values (not in CSV). A share that is equal in all drawings has Wilson's interval. Another figure that
  is, such as the mean of equal grades, has none, and a difference has `null` for both ends: its
  uncertainty cannot be estimated from these rows.
* **Clusters.** Pictures of one prompt are not independent, so `--cluster COLUMN` draws its values with all
  their rows: by default the first of `prompt`, `item` and `text_id` in which rows share a value, else
  `--group`, else rows. `winoground` and `sxs` always draw items, `geneval` prompts. Above 16.8 million pairs
  accuracy has no interval.
* **Several `--metric`** are compared on the rows that have all of them; `incomplete` counts the others. Fewer
  than 30 rows, items or clusters are a `caution`.
* **Left out and counted**: rows with an empty cell or NaN in a used column (`dropped`), and ratings outside
  `--scale A:B`, such as a 6 for "unsure" (`out_of_scale`). `unquoted` counts numbers in quotes. Other cells
  that are no number, and columns of equal values, end the command.
* **Higher is better**, unless a result of `batch` or `--lower-is-better` marks the metric. Ties are without
  float rounding.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import (
    OK,
    PLOTS,
    CommandText,
    UsageError,
    add_commands,
    add_settings,
    check_plot,
    figure,
    settings_of,
)
from scoregate.errors import ColumnError
from scoregate.evaluation.figures import FIGURES, evaluate
from scoregate.formats import FORMATS, as_text, rendered


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    texts = {name: CommandText(each.help, each.example) for name, each in FIGURES.items()}
    add_commands(parser, "figure", texts, declare, "FIGURE")


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one figure."""
    add_settings(parser, FIGURES[name].settings)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--format", choices=FORMATS, help="print a table for a paper")
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"draw it ({', '.join(PLOTS)})")


def printed(content: Mapping[str, Any], form: str | None) -> str:
    """Return the figures in a form of `FORMATS` or as text, a row for each metric or value of several."""
    if form or content.keys() & {"by", "metrics"}:
        return rendered(content, form or "text")
    return as_text(content)


def run(arguments: argparse.Namespace) -> int:
    """Print the figure.  Raises `UsageError` or `InputError` if a table or a column has no information."""
    if arguments.plot:
        check_plot(arguments.plot)
    settings = settings_of(FIGURES[arguments.figure].settings, arguments)
    try:
        outcome = evaluate(arguments.figure, settings)
    except ColumnError as exc:
        raise UsageError(f"{settings.place}, column {settings.columns(exc.argument)}: {exc.why}") from exc
    if arguments.json:
        print(json.dumps(outcome.content, allow_nan=False))
    else:
        print(printed(outcome.content, arguments.format))
    if arguments.plot:
        drawn = figure()
        outcome.draw(drawn.subplots())
        drawn.savefig(arguments.plot)
    return OK
