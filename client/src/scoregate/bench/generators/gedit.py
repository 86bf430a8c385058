"""
GEdit-Bench: editors by task, by a judge of the edit and of the picture.

GEdit-Bench (Liu et al. 2025, [arXiv 2504.17761](https://arxiv.org/abs/2504.17761)): 606 edits in each of
two languages, of eleven tasks. An edit has the smaller grade of the edit (SC), the smaller one of the
picture (PQ), and √(SC · PQ), each from 0 to 10; a task has the mean over its edits, and `G_SC`, `G_PQ` and
`G_O` are means over tasks.

* DATA has the columns of the authors' data set without its pictures:
  `load_dataset("stepfun-ai/GEdit-Bench", split="train") .remove_columns(["input_image",
  "input_image_raw"]).to_json("gedit.jsonl")`. `--language` is `en` or `cn`. `--intersection` counts the
  edits of the column `Intersection_exist` alone.
* A generator's folder has `fullset/TASK/LANGUAGE/KEY.png`, and the authors'
  `fullset/TASK/LANGUAGE/KEY_SRCIMG.png` as the picture before the edit. Their judge sees the edit in the
  size of that picture; here it is not resized.
* The authors' `…_combined_gpt_score.csv` is read as it is. It has the smaller grades alone.

Metric: `judge`. Code that was read: [stepfun-ai/Step1X-Edit](https://github.com/stepfun-ai/Step1X-Edit)
`570eba6`. Licence of the data: Apache 2.0 of the repository; the data's own was not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Annotated

from scoregate.bench.answers import Answers, BenchmarkItem, Found, QuestionEntry, in_rows
from scoregate.bench.benchmark import PART, Benchmark, Paper, Values
from scoregate.bench.grades import EditSettings, graded, grades_from, image_in, questions_of, rubric_name
from scoregate.errors import InputError
from scoregate.evaluation.bootstrap import Figures
from scoregate.evaluation.tables import rows_of
from scoregate.settings import Setting

FOLDER = "fullset"  # the authors' folder of pictures has this name
LANGUAGES = ("en", "cn")
GRADES = ("success", "restraint", "nature", "clean")  # grades of the edit, and of the picture
FIGURES = {"G_SC": "SC", "G_PQ": "PQ", "G_O": "O"}  # the mean over tasks, and its table of tasks


@dataclass(frozen=True, kw_only=True)
class GEditSettings(EditSettings):
    """The settings of GEdit-Bench."""

    language: Annotated[str, Setting("default %(default)s", choices=LANGUAGES)] = LANGUAGES[0]
    intersection: Annotated[
        bool, Setting("only the edits that each of the paper's generators made (column Intersection_exist)")
    ] = False
    rubric: Annotated[str, rubric_name()] = "gedit"


def items(settings: GEditSettings) -> list[BenchmarkItem]:
    """Return the items TASK/LANGUAGE/KEY of one language.  Raises `InputError`."""
    table = rows_of(settings.data)
    columns = [table.names(name) for name in ("task_type", "instruction_language", "key", "instruction")]
    common = table.each("Intersection_exist", is_true) if settings.intersection else [True] * len(columns[0])
    found: dict[str, BenchmarkItem] = {}
    for task, language, key, text, counts in zip(*columns, common, strict=True):
        if language != settings.language or not counts:
            continue
        id = f"{task}/{language}/{key}"
        if id in found:
            raise InputError(f"{settings.data}: two edits are {id}")
        found[id] = BenchmarkItem(
            id,
            text,
            f"{FOLDER}/{id}",
            questions_of(*GRADES),
            task,
            source=image_in(settings.sources, f"{FOLDER}/{id}_SRCIMG.png"),
            options=graded(settings),
        )
    if not found:
        raise InputError(f"{settings.data}: no edit has the language {settings.language}")
    return [*found.values()]


def is_true(cell: object) -> bool:
    """Return a truth value, also one written as text.  Raises `ValueError`."""
    if str(cell).lower() not in ("true", "false"):
        raise ValueError(f"{cell!r} is not true or false")
    return str(cell).lower() == "true"


def values(settings: GEditSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the smaller grade of the edit, that of the picture, and the root of their product, by task."""
    found: dict[str, list[float]] = {}
    for answers in images:
        success, restraint, nature, clean = (float(answers[id]) for id in item.questions)
        edit, quality = min(success, restraint), min(nature, clean)
        for name, value in zip(FIGURES.values(), (edit, quality, sqrt(edit * quality)), strict=True):
            found.setdefault(f"{name}{PART}{item.group}", []).append(value)
    return found


def derived(settings: GEditSettings, figures: Figures) -> Figures:
    """Return the means over tasks."""
    found = {}
    for name, table in FIGURES.items():
        if tasks := [mean for task, mean in figures.items() if task.startswith(f"{table}{PART}")]:
            found[name] = fmean(tasks)
    return found


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """
    Return the scores in the authors' combined CSV, which has the smaller grade of each two.

    Raises:
        InputError: a score is none from 0 to 10, or an edit is there twice.
    """
    if not (table := rows_of(path)).has("sementics_score"):
        return None
    of_id, rows, others = {item.id: item for item in items}, list[QuestionEntry](), 0
    scores = [table.each(name, READING.parse) for name in ("sementics_score", "quality_score")]
    images = table.names("edited_image")
    for record, image, edit, quality in zip(table.records, images, *scores, strict=True):
        file = PurePosixPath(image)
        if (item := of_id.get("/".join([*file.parts[-3:-1], file.stem]))) is None:
            others += 1
            continue
        grades = zip(item.questions, (edit, edit, quality, quality), strict=True)
        place = f"{path}, row {record.number}"
        rows += [QuestionEntry(place, item, "", str(id), grade) for id, grade in grades]
    found = in_rows(rows)
    found.notes += [f"scores of other edits: {others}"] if others else []
    return found


READING = grades_from(0, 10)
GEDIT = Benchmark(
    "gedit",
    "the columns task_type, key, instruction and instruction_language",
    GEditSettings,
    Paper("GPT-4.1", prompts=606),
    items,
    READING,
    values,
    derived,
    {".csv": released},
)
