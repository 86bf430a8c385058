"""Figures of raters: their agreement, how many are enough, reliable prompts, and answers in templates."""

import argparse
import csv
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import count, share, whole
from scoregate.cli.evaluate.outcome import (
    Outcome,
    add_bootstrap,
    add_columns,
    add_ratings,
    add_scale,
    add_table,
    cluster_of,
    label,
    outcome,
    ratings_of,
    scale_of,
)
from scoregate.evaluation import Table, alpha, convergence, reliable
from scoregate.evaluation.raters import LEVELS
from scoregate.evaluation.templates import Answers, Picture, correlations, scores, templates, valued

COLUMNS = {
    "template": "wl, dsg or likert",
    "item": "the prompt",
    "model": "the generator",
    "rater": "who answered",
    "answer": "the answer",
}


def add_alpha(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_ratings(parser)
    add_bootstrap(parser, 0)


def of_alpha(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return alpha at the three levels."""
    cluster = cluster_of(arguments, table, "unit", table.texts(arguments.unit))
    unit, rater, rating, together = ratings_of(arguments, table, [*cluster.cells])
    found = alpha(
        unit,
        rater,
        rating,
        scale=scale_of(arguments),
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
        cluster=together,
    )

    def draw(axes: Any) -> None:
        axes.bar(LEVELS, [getattr(found, level) or 0 for level in LEVELS], color="lightsteelblue")
        for level, ends in (found.intervals or {}).items():
            axes.plot([level, level], ends, color="black", marker="_")
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_ylabel("Krippendorff's alpha")
        axes.set_title(f"{found.units} units, {found.raters} raters")

    drawn = {"cluster": cluster.name if arguments.bootstrap else None}
    return outcome(table, draw, found, drawn)


def add_convergence(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_ratings(parser)
    add = parser.add_argument
    add("--model", metavar="COLUMN", help="the generator of each unit: compare the generators' order, too")
    add("--level", choices=["nominal", "ordinal", "interval"], default="interval", help="default interval")
    add("--samples", type=whole, default=50, metavar="N", help="subsets of each size (default 50)")
    add("--seed", type=count, default=0, help="of the subsets (default 0)")


def of_convergence(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return mean and band for each number of raters."""
    more = [table.texts(arguments.model)] if arguments.model else []
    unit, rater, rating, *model = ratings_of(arguments, table, *more)
    found = convergence(
        unit,
        rater,
        rating,
        model=model[0] if model else None,
        level=arguments.level,
        scale=scale_of(arguments),
        samples=arguments.samples,
        seed=arguments.seed,
    )

    def draw(axes: Any) -> None:
        steps = [step for step in found.steps if step.mean is not None]
        at = [step.k for step in steps]
        axes.plot(at, [step.mean for step in steps], marker="o")
        axes.fill_between(at, [step.low for step in steps], [step.high for step in steps], alpha=0.3)
        axes.set_xticks(at)
        axes.set_xlabel("raters")
        axes.set_ylabel(f"alpha, {found.level}")

    return outcome(table, draw, found)


def add_reliable(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser, "--ratings")
    columns = {"prompt": "the prompt, or its id", "model": "the generator", "rating": "the rating, a number"}
    add_columns(parser, columns)
    add = parser.add_argument
    add("--template", metavar="COLUMN", help="the wording of the question to raters, if there are several")
    add("--unit", metavar="COLUMN", help="the word or question that a rating is about")
    add("--threshold", type=share, default=0.5, help="of the largest disagreement (default 0.5)")
    add_scale(parser)


def of_reliable(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the prompts, and what every generator and template keeps."""
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


def add_templates(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser, "--answers")
    add = parser.add_argument
    for name, what in COLUMNS.items():
        add(f"--{name}", default=name, metavar="COLUMN", help=f"{what} (default {name})")
    what = "the word or question that the answer is about (default unit, where it is there)"
    add("--unit", metavar="COLUMN", help=what)
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the pictures' scores, a .csv with a column by template",
    )


def of_templates(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return a row for each template and generator, and the correlations of templates."""
    answers = answers_of(table, {name: getattr(arguments, name) for name in COLUMNS}, arguments.unit)
    rows, of_pictures = templates(answers), scores(answers)
    content = {
        "pictures": {name: len(found) for name, found in of_pictures.items()},
        "templates": [asdict(row) for row in rows],
        "correlations": correlations(of_pictures),
        "dropped": table.dropped,
    }
    if arguments.out:
        write(arguments.out, of_pictures)

    def draw(axes: Any) -> None:
        whole = [row for row in rows if row.model == "all"]
        names = [label(row.template) for row in whole]
        axes.bar(names, [row.ordinal or 0 for row in whole], color="lightsteelblue")
        axes.set_ylabel("Krippendorff's alpha, ordinal")

    return Outcome(content, draw)


def answers_of(table: Table, names: Mapping[str, str], unit: str | None = None) -> Answers:
    """
    Return the complete rows.

    Args:
        names: the columns by the names of `COLUMNS`.
        unit: the column of words or questions, by default `unit` if there is one.

    Raises:
        BadInput: there is no such column, or a template does not have an answer.
    """
    if unit is None and table.has("unit"):
        unit = "unit"
    units: list[str | None] = (
        [text or "" for text in table.texts(unit)] if unit else [""] * len(table.records)
    )
    columns = [table.texts(names[name]) for name in COLUMNS]
    template, item, model, rater, answer, of = table.complete(*columns, units)
    template = [name.lower() for name in template]
    pairs = list(zip(template, answer, strict=True))
    values = table.each(names["answer"], lambda pair: valued(*pair), pairs)
    return Answers(template, item, model, of, rater, values)


def write(path: Path, found: dict[str, dict[Picture, float]]) -> None:
    """Write a row for each picture, with an empty cell where a template has no score."""
    pictures = sorted({picture for each in found.values() for picture in each})
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "model", *found])
        rows.writerows([*picture, *(each.get(picture) for each in found.values())] for picture in pictures)
