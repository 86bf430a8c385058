"""
OneIG-Bench, alignment: generators by class, from sheets of pictures.

The alignment of OneIG-Bench (Chang et al. 2025, [arXiv 2506.07977](https://arxiv.org/abs/2506.07977)): a
folder has the sheets `anime/NAME/000.png`, `human/NAME/…` and `object/NAME/…`. A question counts 0 if a
direct parent's own answer is no.

`--questions` is the authors' folder `Q_D`. `--multilingualism` adds this class of the Chinese prompts. As
in the authors' code, a black tile stands for no picture (`--keep-black`), and only the answer `Yes` is
right, exactly (`--any-yes`). Their question ends with a request for yes or no alone; set their words with
`--option "dsg.question=…"`.

Metric: `dsg`. Code that was read:
[OneIG-Bench/OneIG-Benchmark](https://github.com/OneIG-Bench/OneIG-Benchmark) `41b4983`. Licence of the
data: none is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from scoregate.bench.answers import GENERATOR, YES_NO, Answers, BenchmarkItem, Question, is_yes
from scoregate.bench.benchmark import PART, Benchmark, Paper, SheetSettings, Values
from scoregate.errors import InputError
from scoregate.evaluation.tables import first_of, rows_of
from scoregate.records import json_cell, json_of
from scoregate.settings import Setting

CLASSES = {"Anime_Stylization": "anime", "Portrait": "human", "General_Object": "object"}
MULTILINGUALISM = {"Multilingualism": "multilingualism"}  # only Chinese prompts have this class
SUFFIXES = {"prompt_en": "", "prompt_cn": "_zh"}  # the files of questions end so


@dataclass(frozen=True, kw_only=True)
class OneIgSettings(SheetSettings):
    """The settings of the alignment of OneIG-Bench."""

    questions: Annotated[
        Path,
        Setting("the folder Q_D of questions and dependencies, a .json for each class", metavar="FOLDER"),
    ]
    multilingualism: Annotated[bool, Setting("with this class of the Chinese prompts")] = False
    keep_black: Annotated[bool, Setting("a black tile is a picture, and not skipped")] = False
    any_yes: Annotated[bool, Setting("an answer such as `yes.` is a yes, not exactly `Yes` alone")] = False


def items(settings: OneIgSettings) -> list[BenchmarkItem]:
    """Return the items of the classes, each with its questions.  Raises `InputError` if one has none."""
    table = rows_of(settings.data)
    column = first_of(table, *SUFFIXES)
    classes = CLASSES | (MULTILINGUALISM if settings.multilingualism else {})
    rows = zip(table.names("category"), table.names("id"), table.names(column), strict=True)
    of_class: dict[str, dict[str, str]] = {}
    for category, id, prompt in rows:
        if category in classes:
            of_class.setdefault(classes[category], {})[id] = prompt
    found = []
    for name, prompts in of_class.items():
        path = settings.questions / f"{name}{SUFFIXES[column]}.json"
        content = json_of(path)
        for id, prompt in prompts.items():
            if not isinstance(content, Mapping) or id not in content:
                raise InputError(f"{path}: there are no questions about item {id}")
            questions = questions_of(content[id], f"{path}, item {id}")
            found.append(BenchmarkItem(f"{name}/{id}", prompt, f"{name}/{GENERATOR}/{id}", questions, name))
    return found


def questions_of(entry: Any, place: str) -> dict[int, Question]:
    """Return the questions of an entry, in which both objects may be texts of JSON.  Raises `InputError`."""
    try:
        texts, parents = (json_cell(entry[name]) for name in ("question", "dependency"))
        return {
            int(id): Question(
                str(text), parents=tuple(int(each) for each in parents.get(id, ()) if int(each))
            )
            for id, text in texts.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise InputError(f"{place}: question and dependency are no objects by number ({exc})") from None


def values(settings: OneIgSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the mean score over the pictures: right answers, and 0 for a child of a no."""
    scores = []
    for answers in images:
        right = {id: is_yes(answers[id], "Yes", any_form=settings.any_yes) for id in item.questions}
        counted = [
            right[id] and all(right.get(parent, True) for parent in question.parents)
            for id, question in item.questions.items()
        ]
        scores.append(fmean(counted))
    return {"alignment": [fmean(scores)], f"classes{PART}{item.group}": [fmean(scores)]}


ONEIG = Benchmark(
    "oneig",
    "OneIG-Bench.csv, or OneIG-Bench-ZH.csv",
    OneIgSettings,
    Paper("Qwen2.5-VL-7B-Instruct", prompts=695, images=4),
    items,
    YES_NO,
    values,
    skip_black=lambda settings: not settings.keep_black,
    example="OneIG-Bench.csv sd3=pictures/sd3 --questions Q_D",
)
