"""`scoregate evaluate`: how far to trust scores, by figures from tables of scores and ratings."""

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scoregate.cli.arguments import OK, PLOTS, UsageFault, add_commands, check_plot, figure
from scoregate.cli.evaluate import generators, metrics, raters
from scoregate.cli.evaluate.outcome import Evaluated, sliced
from scoregate.cli.formats import FORMATS, as_text, rendered
from scoregate.evaluation.arrays import BadColumn
from scoregate.evaluation.tables import read_table


class Figure(NamedTuple):
    """A figure of the command."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    evaluated: Evaluated


FIGURES = {
    "ts2": Figure(
        "a metric on graphs of pictures with known errors (T2IscoreScore): rank, separation, delta",
        metrics.add_ts2,
        metrics.of_ts2,
    ),
    "agreement": Figure(
        "a metric against people's ratings: correlation, and pairwise accuracy with tie calibration",
        metrics.add_agreement,
        metrics.of_agreement,
    ),
    "ordering": Figure(
        "generators against each other: Wilcoxon's signed-rank test for every pair (Gecko)",
        generators.add_ordering,
        generators.of_ordering,
    ),
    "means": Figure(
        "the mean score of each generator; by skill with --by", generators.add_means, generators.of_means
    ),
    "alpha": Figure(
        "raters against each other: Krippendorff's alpha, and the share of extreme disagreement",
        raters.add_alpha,
        raters.of_alpha,
    ),
    "winoground": Figure(
        "two captions and two pictures: Winoground's text, image and group score",
        metrics.add_winoground,
        metrics.of_winoground,
    ),
    "auroc": Figure(
        "right pictures against wrong ones: the area under the ROC curve", metrics.add_auroc, metrics.of_auroc
    ),
    "preference": Figure(
        "pairs of pictures: the share in which a metric prefers what people prefer (binary accuracy)",
        metrics.add_preference,
        metrics.of_preference,
    ),
    "convergence": Figure(
        "how many raters are enough: alpha, and the generators' order, from every number of them",
        raters.add_convergence,
        raters.of_convergence,
    ),
    "reliable": Figure(
        "the prompts that raters agree about, for every generator and template (Gecko)",
        raters.add_reliable,
        raters.of_reliable,
    ),
    "geneval": Figure(
        "GenEval's verdicts: the share of correct pictures by task, and the kappa with people's verdicts",
        generators.add_geneval,
        generators.of_geneval,
    ),
    "sxs": Figure(
        "side-by-side votes (Gecko): generators by majority, and the accuracy of metrics",
        generators.add_sxs,
        generators.of_sxs,
    ),
    "templates": Figure(
        "answers of the templates word level, DSG(H) and Likert (Gecko): agreement, unsure, correlation",
        raters.add_templates,
        raters.of_templates,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_commands(parser, "figure", {name: each.help for name, each in FIGURES.items()}, declare, "FIGURE")


def declare(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of one figure."""
    FIGURES[name].add_arguments(parser)
    what = "the same figures for each value of it; a list counts in each of its values"
    parser.add_argument("--by", metavar="COLUMN", help=what)
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
    try:
        outcome = sliced(FIGURES[arguments.figure].evaluated, arguments, read_table(arguments.table))
    except BadColumn as exc:
        column = vars(arguments).get(exc.role) or exc.role
        column = ", ".join(column) if isinstance(column, list) else column
        raise UsageFault(f"{arguments.table}, column {column}: {exc.why}") from exc
    if arguments.json:
        print(json.dumps(outcome.content, allow_nan=False))
    else:
        print(printed(outcome.content, arguments.format))
    if arguments.plot:
        drawn = figure()
        outcome.draw(drawn.subplots())
        drawn.savefig(arguments.plot)
    return OK
