"""Grades of pictures by a judge: its rubric, the outputs that are answers, and pictures before an edit."""

import argparse
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from scoregate.cli.arguments import UsageFault, options_of
from scoregate.cli.bench.answers import Answers, Item, Question, Reading
from scoregate.records import BadInput
from scoregate.records import number as number_in

JUDGE = "judge"  # the metric


def add_rubric(parser: argparse.ArgumentParser, default: str, what: str = "") -> None:
    """Declare the argument `--rubric`."""
    what = f"a rubric of the service with the same outputs{what} (default %(default)s)"
    parser.add_argument("--rubric", default=default, metavar="NAME", help=what)


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Declare the folder of the pictures before the edit."""
    what = "of the pictures before the edit (default: the folder of the generator's pictures)"
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help=what)


def questions_of(*outputs: str) -> dict[int, Question]:
    """Return a question for each output of the rubric."""
    return {number: Question(name) for number, name in enumerate(outputs, 1)}


def graded(arguments: argparse.Namespace, group: str = "", **data: str) -> dict[str, Any]:
    """
    Return the options of an item: the rubric, in whose name `{type}` is the *group*, and its data.

    Raises:
        UsageFault: an option of the metric names another rubric.
    """
    if "rubric" in options_of(arguments).get(JUDGE, {}):
        raise UsageFault("--option judge.rubric: name the rubric by --rubric")
    rubric = arguments.rubric.replace("{type}", group)
    return {JUDGE: {"rubric": rubric} | ({"data": data} if data else {})}


def picture_in(folder: Path | None, name: str) -> Path:
    """Return the path of a picture below *folder*, if there is one.  Raises `BadInput` for another path."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise BadInput(f"{name!r} is no path below the folder of the pictures")
    return folder.absolute() / path if folder else Path(path)


def grades_from(low: float, high: float) -> Reading:
    """Return the reading of a judge's outputs, which are numbers from *low* to *high*."""

    def grade(cell: Any) -> float:
        value = number_in(cell)
        if not low <= value <= high:
            raise ValueError(f"{cell!r} is not from {low} to {high}")
        return value

    def answers(item: Item, line: Mapping[str, Any]) -> Answers:
        outputs = line["details"][JUDGE]["outputs"]
        try:
            return {id: grade(outputs[question.text]["value"]) for id, question in item.questions.items()}
        except ValueError as exc:
            raise BadInput(f"item {item.id}, rubric {line['details'][JUDGE]['rubric']}: {exc}") from None

    return Reading((JUDGE,), lambda item: item.options, answers, grade)
