"""`scoregate report`: scores a data set, and draws one page of what the scores say."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from math import nan
from pathlib import Path
from typing import Any

from scoregate.answers import is_number
from scoregate.cli import batch, source
from scoregate.cli.arguments import NO_SCORE, OK, add_metrics
from scoregate.cli.sheet import bytes_of, data_uri
from scoregate.data.datasets import Dataset
from scoregate.evaluation import Table
from scoregate.evaluation.outcome import values
from scoregate.records import Record
from scoregate.report.page import page
from scoregate.report.rows import Columns, Cost, Details, ReportRow, ScoredRow
from scoregate.runs.lines import ANY_MODELS
from scoregate.runs.manifest import runs_of
from scoregate.runs.results import Results, existing
from scoregate.runs.warnings import notices_of
from scoregate.settings import finite, scale, share, whole
from scoregate.text import shown

COLUMNS = {
    "human": "people's rating, a number that is larger for a better picture",
    "model": "the generator of the picture",
    "item": "what the generators' pictures have in common (default: the prompt)",
    "skill": "a group, such as the skill that the prompt tests",
}
PICTURES = 12

ITEM = "prompt"  # the default of what generators share
Run = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    source.add_dataset(parser)
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
    dataset = source.named(arguments)
    file = arguments.results or arguments.out.with_suffix(".results.jsonl")
    source.check(dataset, file, arguments.out)
    known = facts(dataset, columns_of(arguments), arguments.scale)
    with (offline if arguments.offline else batch.scored)(arguments, dataset, file) as (results, _, asked):
        complete = batch.tell(results.lines, asked, file, len(results.left_over))
        html = drawn(arguments, dataset, results, known, runs_of(file))
        arguments.out.write_text(html, "utf-8", errors="backslashreplace")
    print(shown(arguments.out), file=sys.stderr)
    return OK if complete else NO_SCORE


@contextmanager
def offline(
    arguments: argparse.Namespace, dataset: Dataset, file: Path
) -> Iterator[tuple[Results, Dataset, int]]:
    """Yield the results in *file* as they are."""
    with existing(dataset, file, arguments.metrics, any_models=arguments.any_models) as results:
        yield results, dataset, 0


@dataclass(frozen=True)
class Fact:
    """Facts of one row; *human* is NaN without a rating, *skill* has all tags, texts are None if empty."""

    human: float
    model: str | None
    item: str | None
    skill: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Facts by the row's number, and the number of dropped ratings."""

    of: dict[int, Fact]
    out_of_scale: int


def facts(dataset: Dataset, columns: Columns, scale: tuple[float, float] | None) -> Facts:
    """
    Return the columns of all rows.

    Raises:
        BadInput: no row has a column, or a rating is not a number.
    """
    rows = [  # without the pictures, which may be in the data set
        Record(row.number, {**row.columns, "prompt": row.prompt, "image": row.image}) for row in dataset
    ]
    table = Table(dataset.path, rows)
    human = table.numbers(columns.human).tolist() if columns.human else [nan] * len(rows)
    texts = [
        table.texts(column) if column else [None] * len(rows)
        for column in (columns.model, columns.item or ITEM)
    ]
    skills = table.each(columns.skill, values) if columns.skill else [[] for _ in rows]
    outside = {
        place
        for place, rating in enumerate(human)
        if scale and not (rating != rating or scale[0] <= rating <= scale[1])
    }
    kept = [nan if place in outside else rating for place, rating in enumerate(human)]
    found = {row.number: Fact(*cells) for row, *cells in zip(rows, kept, *texts, skills, strict=True)}
    return Facts(found, len(outside))


def columns_of(arguments: argparse.Namespace) -> Columns:
    """Return the columns given by arguments."""
    return Columns(arguments.human, arguments.model, arguments.item, arguments.skill)


def drawn(
    arguments: argparse.Namespace, dataset: Dataset, results: Results, facts: Facts, runs: Sequence[Run]
) -> str:
    """Return the page; *runs* are those of the manifest."""

    def details_of(wanted: set[int]) -> Mapping[int, Details]:
        return {each["row"]: each.get("details", {}) for each in results.lines() if each["row"] in wanted}

    def pictures_of(wanted: set[int]) -> Mapping[int, str]:
        return {row.number: data_uri(bytes_of(row)) for row in dataset if row.number in wanted}

    scored = ScoredRow(
        name=dataset.path.resolve().name,
        drawn=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        rows=list(rows(results, facts)),
        metrics=results.plan.metrics,
        details_of=details_of,
        pictures_of=pictures_of,
        columns=columns_of(arguments),
        models=results.plan.models,
        options=results.plan.options,
        lower=frozenset(results.plan.lower),
        version=str(runs[-1].get("service", {}).get("version", "")) if runs else "",
        out_of_scale=facts.out_of_scale,
        cost=cost_of(runs, arguments.price_per_hour),
    )
    return page(scored, alpha=arguments.alpha, pictures=arguments.pictures)


def rows(results: Results, facts: Facts) -> Iterator[ReportRow]:
    """Yield a row for each line, with its facts from the data set."""
    for line in results.lines():
        scores = line["scores"]
        details = line.get("details", {})
        yield ReportRow(
            number=line["row"],
            image=line["image"] or "",
            prompt=line["prompt"] or "",
            scores=scores,
            errors=line["errors"],
            models=line.get("models", {}) if scores else {},
            warnings=notices_of(line),
            parts={name: parts for name in details if (parts := parts_of(details[name], scores.get(name)))},
            **vars(facts.of[line["row"]]),
        )


def parts_of(details: Any, score: float | None) -> Mapping[str, float]:
    """Return a picture's score by skill, or by GenEval's task; empty if the details have neither."""
    if not isinstance(details, Mapping):
        return {}
    skills, tag = details.get("skills"), details.get("tag")
    if isinstance(skills, Mapping):
        return {str(name): float(value) for name, value in skills.items() if is_number(value)}
    return {tag: score} if isinstance(tag, str) and score is not None else {}


def cost_of(runs: Sequence[Run], price_per_hour: float | None) -> Cost:
    """Return the sum of the runs that sent requests."""
    asking = [run for run in runs if run["requested"]]
    requested, cached, seconds = (
        sum(run[name] for run in asking) for name in ("requested", "cached", "seconds")
    )
    return Cost(len(asking), requested, cached, seconds, price_per_hour)
