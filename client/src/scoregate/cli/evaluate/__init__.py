"""`scoregate evaluate`: how far to trust scores, by figures from tables of scores and ratings."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scoregate.cli import plot
from scoregate.cli.evaluate import (
    agreement,
    alpha,
    auroc,
    convergence,
    geneval,
    means,
    ordering,
    preference,
    reliable,
    sxs,
    templates,
    ts2,
    winoground,
)
from scoregate.cli.evaluate.formats import FORMATS, rendered
from scoregate.cli.evaluate.slices import sliced
from scoregate.cli.evaluate.text import as_text
from scoregate.cli.exits import OK, UsageFault

HELP = "compare metrics, generators and raters, from tables of scores and ratings"

# A figure is a module with HELP, add_arguments(parser) and evaluated(arguments, table) -> Outcome.
FIGURES = {
    "ts2": ts2,
    "agreement": agreement,
    "ordering": ordering,
    "means": means,
    "alpha": alpha,
    "winoground": winoground,
    "auroc": auroc,
    "preference": preference,
    "convergence": convergence,
    "reliable": reliable,
    "geneval": geneval,
    "sxs": sxs,
    "templates": templates,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    figures = parser.add_subparsers(dest="figure", required=True, metavar="FIGURE")
    for name, module in FIGURES.items():
        described = f"{module.HELP[0].upper()}{module.HELP[1:]}."
        figure = figures.add_parser(name, help=module.HELP, description=described)
        module.add_arguments(figure)
        what = "the same figures for each value of it; a list counts in each of its values"
        figure.add_argument("--by", metavar="COLUMN", help=what)
        figure.add_argument("--json", action="store_true", help="print JSON")
        figure.add_argument("--format", choices=FORMATS, help="print a table for a paper")
        kinds = ", ".join(plot.KINDS)
        figure.add_argument("--plot", type=Path, metavar="FILE", help=f"draw it ({kinds})")


def printed(content: Mapping[str, Any], form: str | None) -> str:
    """Return the figures in a form of `FORMATS` or as text, a row for each metric or value of several."""
    if form or content.keys() & {"by", "metrics"}:
        return rendered(content, form or "text")
    return as_text(content)


def run(arguments: argparse.Namespace) -> int:
    """Print the figure.  Raises `UsageFault` if a table or a column has no information."""
    try:
        from scoregate.evaluation import BadColumn, BadInput, read
    except ModuleNotFoundError as exc:
        raise UsageFault(
            f"evaluate needs {exc.name}: pip install './client[evaluate]' in a checkout of Scoregate"
        ) from exc
    if arguments.plot:
        plot.check(arguments.plot)
    try:
        outcome = sliced(FIGURES[arguments.figure].evaluated, arguments, read(arguments.table))
    except BadColumn as exc:
        column = vars(arguments).get(exc.role) or exc.role
        column = ", ".join(column) if isinstance(column, list) else column
        raise UsageFault(f"{arguments.table}, column {column}: {exc.why}") from exc
    except BadInput as exc:
        raise UsageFault(str(exc)) from exc
    if arguments.json:
        print(json.dumps(outcome.content, allow_nan=False))
    else:
        print(printed(outcome.content, arguments.format))
    if arguments.plot:
        figure = plot.figure()
        outcome.draw(figure.subplots())
        figure.savefig(arguments.plot)
    return OK
