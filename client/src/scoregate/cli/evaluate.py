"""
`scoregate evaluate`: how far to trust scores, by figures from tables of scores and ratings.

Tables of scores and ratings are read without a service.
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
    UsageFault,
    add_commands,
    add_settings,
    check_plot,
    figure,
    settings_of,
)
from scoregate.evaluation.arrays import BadColumn
from scoregate.evaluation.figures import FIGURES, evaluate
from scoregate.report.formats import FORMATS, as_text, rendered


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
    """Print the figure.  Raises `UsageFault` or `BadInput` if a table or a column has no information."""
    if arguments.plot:
        check_plot(arguments.plot)
    settings = settings_of(FIGURES[arguments.figure].settings, arguments)
    try:
        outcome = evaluate(arguments.figure, settings)
    except BadColumn as exc:
        raise UsageFault(f"{settings.place}, column {settings.columns(exc.role)}: {exc.why}") from exc
    if arguments.json:
        print(json.dumps(outcome.content, allow_nan=False))
    else:
        print(printed(outcome.content, arguments.format))
    if arguments.plot:
        drawn = figure()
        outcome.draw(drawn.subplots())
        drawn.savefig(arguments.plot)
    return OK
