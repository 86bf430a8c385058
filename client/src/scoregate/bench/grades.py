"""
Grades of pictures by a judge: its rubric, the outputs that are answers, and pictures before an edit.

`gedit`, `imgedit`, `kris`, `wise` and `wise_verified` have grades by a vision-language model behind a
server. Each has a rubric of the same name, and `kris` has four.

* **The words are ours**, and not those of the authors: grades by other words are other figures, and
  `CAUTION` names the rubric. Put the authors' words into a rubric of your own, with the outputs, ranges and
  pictures of ours, and name it with `--rubric NAME`.
* **Strict answers.** A picture whose answer has not the form of the rubric, also after one repetition, is
  left out.
* **Pictures before an edit** are named as `source` by `--prompts`. They are in the generator's folder, or
  for several generators in the folder `--sources`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from scoregate.bench.answers import Answers, BenchmarkItem, Question, Reading
from scoregate.bench.benchmark import GeneratorSettings
from scoregate.errors import InputError, named
from scoregate.records import number as number_in
from scoregate.settings import Setting

JUDGE = "judge"  # the metric


@dataclass(frozen=True, kw_only=True)
class JudgeSettings(GeneratorSettings):
    """Settings of a benchmark with a judge, each of which has a rubric of its own."""

    rubric: str = ""


@dataclass(frozen=True, kw_only=True)
class EditSettings(JudgeSettings):
    """Settings of a benchmark of edits."""

    sources: Annotated[
        Path | None,
        Setting(
            "of the pictures before the edit (default: the folder of the generator's pictures)",
            metavar="FOLDER",
        ),
    ] = None


def rubric_name(what: str = "") -> Setting:
    """Return the setting of a rubric's name."""
    return Setting(
        f"a rubric of the service with the same outputs{what} (default %(default)s)", metavar="NAME"
    )


def questions_of(*outputs: str) -> dict[int, Question]:
    """Return a question for each output of the rubric."""
    return {number: Question(name) for number, name in enumerate(outputs, 1)}


def graded(settings: JudgeSettings, group: str = "", **data: str) -> dict[str, Any]:
    """
    Return the options of an item: the rubric, in whose name `{type}` is the *group*, and its data.

    Raises:
        InputError: an option of the metric names another rubric.
    """
    if "rubric" in settings.options.get(JUDGE, {}):
        raise InputError(f"{named('option')} judge.rubric: name the rubric by {named('rubric')}")
    rubric = settings.rubric.replace("{type}", group)
    return {JUDGE: {"rubric": rubric} | ({"data": data} if data else {})}


def image_in(folder: Path | None, name: str) -> Path:
    """Return the path of a picture below *folder*, if there is one.  Raises `InputError` for another path."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise InputError(f"{name!r} is no path below the folder of the pictures")
    return folder.absolute() / path if folder else Path(path)


def grades_from(low: float, high: float) -> Reading:
    """Return the reading of a judge's outputs, which are numbers from *low* to *high*."""

    def grade(cell: Any) -> float:
        value = number_in(cell)
        if not low <= value <= high:
            raise ValueError(f"{cell!r} is not from {low} to {high}")
        return value

    def answers(item: BenchmarkItem, line: Mapping[str, Any]) -> Answers:
        outputs = line["details"][JUDGE]["outputs"]
        try:
            return {id: grade(outputs[question.text]["value"]) for id, question in item.questions.items()}
        except ValueError as exc:
            raise InputError(f"item {item.id}, rubric {line['details'][JUDGE]['rubric']}: {exc}") from None

    return Reading((JUDGE,), lambda item: item.options, answers, grade)
