"""
UniGenBench++: generators by dimension and test point.

UniGenBench++ (Wang et al. 2025, [arXiv 2510.18701](https://arxiv.org/abs/2510.18701)): 600 prompts with
four pictures each, `0_0.png` to `0_3.png`, and several test points. A dimension and a test point have the
share of passed ones, over all pictures. DATA is one of the authors' four files: short or long prompts, in
English or Chinese.

* A test point is passed if `dsg` has the answer yes to a question with the prompt, the point and its
  description, in our words. The authors' judge grades all points of a picture in one call. `--option
  "dsg.question={} Please answer yes or no."` has other words.
* The authors' CSV of results, by Gemini or their own model, is read as it is. In a table the answer is the
  grade, 0 or 1. As in their script, a picture without grades is left out alone, and not all of its prompt.
  It writes null for the grades where the judge failed.
* A cell of `test_prompts_en_long.csv` (row 510 in `49d0bce`) is no JSON, and an error: a comma is missing
  there. `--skip-broken` skips such rows.

Metric: `dsg`. Code that was read: [CodeGoat24/UniGenBench](https://github.com/CodeGoat24/UniGenBench)
`49d0bce`. Licence of the data: CC BY 4.0.
"""

import json
import re
from ast import literal_eval
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from scoregate.bench.answers import (
    Answers,
    BenchmarkItem,
    Found,
    Question,
    QuestionEntry,
    Reading,
    in_details,
    in_rows,
    share,
    yes_no_set,
)
from scoregate.bench.benchmark import PART, Benchmark, GeneratorSettings, Paper, Values
from scoregate.errors import InputError
from scoregate.evaluation.tables import first_of, rows_of
from scoregate.records import Record
from scoregate.settings import Setting

# Columns of the prompt and of its test points, and their names there, in both languages.
LANGUAGES = {
    "prompt_en": ("sub_dims_en", "Testpoints", "Testpoint Description"),
    "prompt_zh": ("sub_dims_zh", "考点", "考点对应描述"),
}
IMAGE_NAME = re.compile(r"[0-9]+_([0-9]+)\..*")
MISSING = {"", "null", "none", "nan", "na", "n/a", "<na>"}
METRIC = "dsg"
WORDS = (
    'This picture was generated from the prompt "{prompt}". Is it right in this point: {}?'
    " Please answer yes or no."
)


@dataclass(frozen=True, kw_only=True)
class UniGenSettings(GeneratorSettings):
    """The settings of UniGenBench++."""

    skip_broken: Annotated[
        bool, Setting("leave out a row of DATA whose test points cannot be read, in place of an error")
    ] = False


def items(settings: UniGenSettings) -> list[BenchmarkItem]:
    """Return the items, with a question for each test point.  Raises `InputError`."""
    table = rows_of(settings.data)
    prompt = first_of(table, *LANGUAGES)
    column, points, descriptions = LANGUAGES[prompt]
    worded = "question" in settings.options.get(METRIC, {})
    found = []
    rows = zip(table.names("index"), table.names(prompt), table.names(column), table.records, strict=True)
    for id, text, cell, record in rows:
        try:
            entry = json.loads(cell)
            pairs = enumerate(zip(entry[points], entry[descriptions], strict=True), 1)
            questions = {number: Question(str(what), "1", tag=str(point)) for number, (point, what) in pairs}
        except (KeyError, TypeError, ValueError) as exc:
            if settings.skip_broken:
                continue
            place = f"{settings.data}, row {record.number}, column {column}"
            raise InputError(f"{place}: no lists {points} and {descriptions} ({exc})") from None
        options = {METRIC: {} if worded else {"question": WORDS.replace("{prompt}", text)}}
        found.append(BenchmarkItem(id, text, id, questions, options=options))
    return found


def with_points(item: BenchmarkItem) -> BenchmarkItem:
    """Return an item whose questions also name their test points: one text may belong to several."""
    named = {id: each._replace(text=f'{each.tag}, "{each.text}"') for id, each in item.questions.items()}
    return replace(item, questions=named)


def options(item: BenchmarkItem) -> dict[str, Any]:
    """Return the options of the metric: a set with a yes-no question for each test point."""
    return {METRIC: {**item.options[METRIC], "question_set": yes_no_set(with_points(item))}}


def answers(item: BenchmarkItem, line: Mapping[str, Any]) -> Answers:
    """Return whether each test point is answered with yes."""
    return {id: each == "yes" for id, each in in_details(METRIC, with_points(item), line, "answer").items()}


def values(settings: UniGenSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return 1 for each test point that a picture passes, else 0, by dimension and by test point."""
    found: dict[str, list[float]] = {}
    for answers in images:
        for id, question in item.questions.items():
            passed = float(answers[id] == 1)
            for name in (question.tag.partition("-")[0].strip(), f"points{PART}{question.tag}"):
                found.setdefault(name, []).append(passed)
    return found


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """
    Return the grades in the authors' CSV of results; a picture whose row has none is without answers.

    Raises:
        InputError: a row is about no item, or has not a grade for each of its test points.
    """
    if not (table := rows_of(path)).has("img_path"):
        return None
    of_id = {item.id: item for item in items}
    rows, without = list[QuestionEntry](), list[tuple[str, str]]()
    for record, id, image in zip(table.records, table.names("index"), table.names("img_path"), strict=True):
        place = f"{path}, row {record.number}"
        if (item := of_id.get(id)) is None:
            raise InputError(f"{place}, column index: the benchmark has no item {id}")
        number = parts[1] if (parts := IMAGE_NAME.fullmatch(Path(image).name)) else ""
        grades = grades_in(record, item, place)
        if grades is None:
            without.append((id, number))
            continue
        pairs = zip(item.questions, grades, strict=True)
        rows += [QuestionEntry(place, item, number, str(id), float(grade == 1)) for id, grade in pairs]
    found = in_rows(rows)
    for id, _ in without:
        found.images.setdefault(id, []).append(None)
    return found


def grades_in(record: Record, item: BenchmarkItem, place: str) -> list[Any] | None:
    """
    Return the grades in `result_json` or `score`, or None.

    The cells are in JSON or in Python's form.  The authors' script writes null where a judge failed, which
    pandas reads as a missing cell.
    """
    cells = (str(record.values.get(name) or "") for name in ("result_json", "score"))
    if (cell := next((each for each in cells if each.strip().lower() not in MISSING), None)) is None:
        return None
    points = [question.tag for question in item.questions.values()]
    try:
        content = literal(cell)
        given = literal(str(record.values.get("testpoint") or points))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as exc:
        raise InputError(f"{place}: result_json or testpoint cannot be read ({exc})") from None
    grades = content.get("score") if isinstance(content, Mapping) else content
    if grades is None:
        return None
    if given != points or not isinstance(grades, list) or len(grades) != len(points):
        raise InputError(f"{place}: not a grade for each test point of item {item.id}, {', '.join(points)}")
    return grades


def literal(text: str) -> Any:
    """Return the value of a text in JSON, or of a literal of Python.  Raises as `literal_eval`."""
    with suppress(ValueError):
        return json.loads(text)
    return literal_eval(text)


UNIGEN = Benchmark(
    "unigen",
    "test_prompts_en.csv, or another file of prompts",
    UniGenSettings,
    Paper("Gemini 2.5 Pro", prompts=600, images=4),
    items,
    Reading((METRIC,), options, answers, share),
    values,
    released={".csv": released},
    partial=True,
    pooled=True,
)
