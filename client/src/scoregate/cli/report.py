"""`scoregate report`: scores a data set, and draws one page of what the scores say."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scoregate.cli import batch
from scoregate.cli.arguments import add_metrics, finite, whole
from scoregate.cli.datasets import Dataset
from scoregate.cli.evaluate.outcome import scale, share
from scoregate.cli.exits import NO_SCORE, OK, UsageFault
from scoregate.cli.facts import facts
from scoregate.cli.held import held
from scoregate.cli.lines import ANY_MODELS
from scoregate.cli.manifest import runs_of
from scoregate.cli.results import Results
from scoregate.text import shown

HELP = (
    "score a data set, and draw a page: means, skills, generators, people's ratings, the worst pictures, cost"
)
COLUMNS = {
    "human": "people's rating, a number that is larger for a better picture",
    "model": "the generator of the picture",
    "item": "what the generators' pictures have in common (default: the prompt)",
    "skill": "a group, such as the skill that the prompt tests",
}
PICTURES = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    batch.add_dataset(parser)
    add = parser.add_argument
    add("-o", "--out", type=Path, required=True, metavar="PAGE", help="the page, a .html")
    add_metrics(parser)
    for name, what in COLUMNS.items():
        add(f"--{name}", metavar="COLUMN", help=what)
    add("--scale", type=scale, metavar="A:B", help="ratings outside are counted and left out")
    add(ANY_MODELS, dest="any_models", action="store_true", help="scores of several models on one page")
    add("--results", type=Path, metavar="FILE", help="the scores, as of `batch` (default: next to the page)")
    add("--offline", action="store_true", help="draw what is in --results, without a service")
    add(
        "--alpha",
        type=share,
        default=0.001,
        metavar="A",
        help="generators differ where p is below (default 0.001)",
    )
    add(
        "--price-per-hour",
        type=price,
        metavar="PRICE",
        help="of the service, for the price of 1,000 pictures",
    )
    add(
        "--pictures",
        type=whole,
        default=PICTURES,
        metavar="N",
        help="shown of each metric (default %(default)s)",
    )
    parser.set_defaults(explain=True)


def price(text: str) -> float:
    """Return an amount of money, 0 or more."""
    value = finite(text)
    if value < 0:
        raise argparse.ArgumentTypeError("a price is 0 or more")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Return 0, or 1 if some row lacks a score; the page is written in both cases."""
    try:
        from scoregate.cli import drawing
    except ModuleNotFoundError as exc:
        raise UsageFault(
            f"report needs {exc.name}: pip install './client[evaluate]' in a checkout of Scoregate"
        ) from exc
    dataset = batch.dataset_of(arguments)
    file = arguments.results or arguments.out.with_suffix(".results.jsonl")
    batch.check(dataset, file, arguments.out)
    known = facts(dataset, drawing.columns_of(arguments), arguments.scale)
    with (offline if arguments.offline else batch.scored)(arguments, dataset, file) as (results, _, asked):
        complete = batch.tell(results, asked, file)
        page = drawing.drawn(arguments, dataset, results, known, runs_of(file))
        arguments.out.write_text(page, "utf-8", errors="backslashreplace")
    print(shown(arguments.out), file=sys.stderr)
    return OK if complete else NO_SCORE


@contextmanager
def offline(
    arguments: argparse.Namespace, dataset: Dataset, file: Path
) -> Iterator[tuple[Results, Dataset, int]]:
    """Yield the results in *file* as they are."""
    with held(dataset, file, arguments.metrics, any_models=arguments.any_models) as results:
        yield results, dataset, 0
