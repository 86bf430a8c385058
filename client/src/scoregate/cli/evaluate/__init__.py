"""`scoregate evaluate`: how far to trust scores, by figures from tables of scores and ratings."""

import argparse
import json
from pathlib import Path

from scoregate.cli import plot
from scoregate.cli.evaluate import (
    agreement,
    alpha,
    auroc,
    convergence,
    geneval,
    ordering,
    preference,
    reliable,
    ts2,
    winoground,
)
from scoregate.cli.evaluate.text import as_text
from scoregate.cli.exits import OK, UsageFault

HELP = "compare metrics, generators and raters, from tables of scores and ratings"

# A figure is a module with HELP, add_arguments(parser) and evaluated(arguments) -> Outcome.
FIGURES = {
    "ts2": ts2,
    "agreement": agreement,
    "ordering": ordering,
    "alpha": alpha,
    "winoground": winoground,
    "auroc": auroc,
    "preference": preference,
    "convergence": convergence,
    "reliable": reliable,
    "geneval": geneval,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    figures = parser.add_subparsers(dest="figure", required=True, metavar="FIGURE")
    for name, module in FIGURES.items():
        described = f"{module.HELP[0].upper()}{module.HELP[1:]}."
        figure = figures.add_parser(name, help=module.HELP, description=described)
        module.add_arguments(figure)
        figure.add_argument("--json", action="store_true", help="print JSON")
        kinds = ", ".join(plot.KINDS)
        figure.add_argument("--plot", type=Path, metavar="FILE", help=f"draw it ({kinds})")


def run(arguments: argparse.Namespace) -> int:
    """Print the figure.  Raises `UsageFault` if a table or a column has no information."""
    try:
        from scoregate.evaluation import BadColumn, BadInput
    except ModuleNotFoundError as exc:
        raise UsageFault(
            f"evaluate needs {exc.name}: pip install './client[evaluate]' in a checkout of Scoregate"
        ) from exc
    if arguments.plot:
        plot.check(arguments.plot)
    try:
        outcome = FIGURES[arguments.figure].evaluated(arguments)
    except BadColumn as exc:
        column = vars(arguments).get(exc.role) or exc.role
        raise UsageFault(f"{arguments.table}, column {column}: {exc.why}") from exc
    except BadInput as exc:
        raise UsageFault(str(exc)) from exc
    print(json.dumps(outcome.content, allow_nan=False) if arguments.json else as_text(outcome.content))
    if arguments.plot:
        figure = plot.figure()
        outcome.draw(figure.subplots())
        figure.savefig(arguments.plot)
    return OK
