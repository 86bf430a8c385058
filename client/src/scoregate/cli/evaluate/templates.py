"""`scoregate evaluate templates`: answers in Gecko's templates as scores, and how well raters agree."""

import argparse
import csv
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import Outcome, add_table, label

if TYPE_CHECKING:
    from scoregate.evaluation import Table
    from scoregate.evaluation.templates import Answers, Picture

HELP = "answers of the templates word level, DSG(H) and Likert (Gecko): agreement, unsure, correlation"
COLUMNS = {
    "template": "wl, dsg or likert",
    "item": "the prompt",
    "model": "the generator",
    "rater": "who answered",
    "answer": "the answer",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return a row for each template and generator, and the correlations of templates."""
    from scoregate.evaluation.templates import correlations, scores, templates

    answers = answers_of(arguments, table)
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


def answers_of(arguments: argparse.Namespace, table: "Table") -> "Answers":
    """Return the complete rows.  Raises `BadInput` for an answer that its template does not have."""
    from scoregate.evaluation.tables import held
    from scoregate.evaluation.templates import Answers, valued

    unit = arguments.unit
    if unit is None and any(held(record.values, "unit") for record in table.records):
        unit = "unit"
    units: list[str | None] = (
        [text or "" for text in table.texts(unit)] if unit else [""] * len(table.records)
    )
    columns = [table.texts(getattr(arguments, name)) for name in COLUMNS]
    template, item, model, rater, answer, of = table.complete(*columns, units)
    template = [name.lower() for name in template]
    pairs = list(zip(template, answer, strict=True))
    values = table.parsed(arguments.answer, pairs, lambda pair: valued(*pair))
    return Answers(template, item, model, of, rater, values)


def write(path: Path, found: "dict[str, dict[Picture, float]]") -> None:
    """Write a row for each picture, with an empty cell where a template has no score."""
    pictures = sorted({picture for each in found.values() for picture in each})
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item", "model", *found])
        rows.writerows([*picture, *(each.get(picture) for each in found.values())] for picture in pictures)
