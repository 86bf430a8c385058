"""
WISE: generators by category of world knowledge, by a judge.

WISE (Niu et al. 2025, [arXiv 2503.07265](https://arxiv.org/abs/2503.07265)): 1,000 prompts that need world
knowledge, a picture for each, `PROMPT_ID.png`. The grades are from 0 to 2. A picture has (0.7 consistency +
0.2 realism + 0.1 aesthetic quality) / 2, a category the mean over prompts, and

    overall = 0.4 culture + 0.167 time + 0.133 space + 0.1 biology + 0.1 physics + 0.1 chemistry

DATA is the authors' folder of prompts (`WISE_legacy/data`), or a file of it; files `…_rewrite.json` are not
read. The explanation of a prompt is a text of the item, `{data.explanation}` in a rubric. The authors'
`…results.jsonl` are read as they are, all of a folder or one. `overall` needs pictures of all categories;
the authors' code prints it for all 1,000 prompts alone.

Metric: `judge`. Code that was read: [PKU-YuanGroup/WISE](https://github.com/PKU-YuanGroup/WISE) `eb51174`.
Licence of the data: none is named.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import fsum
from pathlib import Path
from typing import Annotated, Any

from scoregate.bench.answers import FOLDER_KIND, Answer, Answers, BenchmarkItem, Found, QuestionEntry, in_rows
from scoregate.bench.benchmark import Benchmark, Paper, Values
from scoregate.bench.grades import JudgeSettings, graded, grades_from, questions_of, rubric_name
from scoregate.errors import InputError
from scoregate.evaluation.bootstrap import Figures
from scoregate.evaluation.tables import rows_of

RELEASED_KINDS = (FOLDER_KIND, ".jsonl")  # kinds of the authors' answers
CATEGORIES = {  # the names of the data, in small letters
    "cultural knowledge": "culture",
    "time": "time",
    "space": "space",
    "biology": "biology",
    "physical knowledge": "physics",
    "chemistry": "chemistry",
}
WEIGHTS = {"consistency": 0.7, "realism": 0.2, "aesthetic_quality": 0.1}  # weights of grades from 0 to 2
SHARES = {"culture": 0.4, "time": 0.167, "space": 0.133, "biology": 0.1, "physics": 0.1, "chemistry": 0.1}
COPIES = ("_rewrite", "merge")  # the ends of names of files that are not the prompts, or all of them again


@dataclass(frozen=True, kw_only=True)
class WiseSettings(JudgeSettings):
    """The settings of WISE."""

    rubric: Annotated[str, rubric_name()] = "wise"


def items(settings: JudgeSettings, outputs: Sequence[str] = tuple(WEIGHTS)) -> list[BenchmarkItem]:
    """Return the items, with a question for each of the *outputs*.  Raises `InputError`."""
    files = [settings.data]
    if settings.data.is_dir():
        files = [file for file in sorted(settings.data.glob("*.json")) if not file.stem.endswith(COPIES)]
    found: dict[str, BenchmarkItem] = {}
    for file in files:
        table = rows_of(file)
        columns = map(table.names, ("prompt_id", "Prompt", "Explanation"))
        categories = table.each("Category", category)
        for id, prompt, why, group in zip(*columns, categories, strict=True):
            if id in found:
                raise InputError(f"{file}: two prompts have the prompt_id {id}")
            options = graded(settings, explanation=why)
            found[id] = BenchmarkItem(id, prompt, id, questions_of(*outputs), group, options=options)
    if not found:
        raise InputError(f"{settings.data}: there is no file of prompts")
    return [*found.values()]


def category(cell: object) -> str:
    """Return the short name of a category.  Raises `ValueError`."""
    if (name := str(cell).lower()) not in CATEGORIES:
        raise ValueError(f"{cell!r} is no category")
    return CATEGORIES[name]


def values(settings: JudgeSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the weighted sum of the grades of each picture, from 0 to 1, by category."""
    weights = WEIGHTS.values()
    return {
        item.group: [
            fsum(weight * float(answers[id]) for id, weight in enumerate(weights, 1)) / 2
            for answers in images
        ]
    }


def whole(shares: Mapping[str, float], settings: JudgeSettings, figures: Figures) -> Figures:
    """Return the mean of the categories by their *shares*; none without each of them."""
    if not shares.keys() <= figures.keys():
        return {}
    return {"overall": fsum(share * figures[name] for name, share in shares.items())}


READING = grades_from(0, 2)


def released(
    path: Path, items: Sequence[BenchmarkItem], parse: Callable[[Any], Answer | None] = READING.parse
) -> Found | None:
    """
    Return the grades in the authors' files `…results.jsonl`: a folder of three of them, or a single one.

    Raises:
        InputError: a grade is missing or none, its prompt is not in the data, or is there twice.
    """
    files = sorted(path.glob("*results.jsonl")) if path.is_dir() else [path]
    of_id, rows = {item.id: item for item in items}, list[QuestionEntry]()
    names = [question.text for question in items[0].questions.values()]
    for table in map(rows_of, files):
        if not table.has("prompt_id"):
            return None
        columns = [table.each(name, parse) for name in names]
        for record, id, *grades in zip(table.records, table.names("prompt_id"), *columns, strict=True):
            place = f"{table.place}, row {record.number}"
            if id not in of_id:
                raise InputError(f"{place}, column prompt_id: the benchmark has no item {id}")
            pairs = zip(names, grades, strict=True)
            rows += [QuestionEntry(place, of_id[id], "", name, grade) for name, grade in pairs]
    return in_rows(rows) if rows else None


WISE = Benchmark(
    "wise",
    "the authors' folder of three files of prompts, or one such file",
    WiseSettings,
    Paper("gpt-4o-2024-05-13", prompts=1000),
    items,
    READING,
    values,
    partial(whole, SHARES),
    dict.fromkeys(RELEASED_KINDS, released),
)
