"""
ImgEdit-Bench: editors by type of edit, by a judge.

The basic part of ImgEdit-Bench (Ye et al. 2025, [arXiv 2505.20275](https://arxiv.org/abs/2505.20275)): 737
edits of nine types with three grades from 1 to 5. An edit has their mean, rounded to two digits, a type the
mean over its edits, and `overall` is the mean over types, which the authors' code does not print.

* `--sources` is the authors' folder of original pictures. A generator's folder has `KEY.png`.
* The outputs of the rubric are `compliance`, `appearance` and `detail`. The authors' instructions differ by
  type: with nine rubrics of your own, `imgedit_add` and so on, give `--rubric "imgedit_{type}"`.
* The authors' `result.json`, with the answers of GPT-4o as written, is read as it is. An answer without
  three grades is left out; the authors' code averages those that it finds. `--exact` does not round. Their
  second script also rounds the means of types.

Metric: `judge`. Code that was read: [PKU-YuanGroup/ImgEdit](https://github.com/PKU-YuanGroup/ImgEdit)
`547185d`. Licence of the data: none is named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated

from scoregate.bench.answers import Answers, BenchmarkItem, Found, QuestionEntry, in_rows
from scoregate.bench.benchmark import PART, Benchmark, Paper, Values
from scoregate.bench.grades import EditSettings, graded, grades_from, image_in, questions_of, rubric_name
from scoregate.errors import InputError
from scoregate.evaluation.bootstrap import Figures
from scoregate.records import json_of
from scoregate.settings import Setting

GRADES = ("compliance", "appearance", "detail")
GRADE = re.compile(r"[^:]*[^:\s]: ([1-5])")  # a line of the authors' answers
TYPES = f"types{PART}"

SEAMS = "the changed part cannot be found by its edges, light, colours or sharpness"
POSSIBLE = "shadows, contact and perspective are possible, and nothing else was damaged"
# What each grade is about, by the type of the edit.
POINTS = {
    "add": ("the new thing is there, in the kind, number, place and look that were wanted", SEAMS, POSSIBLE),
    "adjust": ("the right thing has the wanted property, and kept its shape", SEAMS, POSSIBLE),
    "replace": ("the old thing is gone, and the wanted one is in its place", SEAMS, POSSIBLE),
    "remove": (
        "all of what was to go is gone, and nothing else is",
        "the gap is filled in such a way that it cannot be found",
        "what is now seen behind it is possible, and nothing else was damaged",
    ),
    "background": (
        "the background is the wanted one, and what stands before it was kept",
        "there is no seam around what stands before it",
        "light, perspective and distance of both agree",
    ),
    "style": (
        "the whole picture has the wanted style",
        "all things are those of the first picture, with their shapes and places",
        "strokes and surfaces are clean, without noise or blur",
    ),
    "action": (
        "the body or the face does what was wanted",
        "it is clearly the same person or animal, in the same clothes",
        "limbs, hands and face are possible, and no seam is seen",
    ),
    "extract": (
        "the wanted thing is there, whole and alone",
        "all around it is plain white, up to a clean edge",
        "the thing is sharp, and has its own colours and form",
    ),
    "compose": ("each of the wanted changes was made, and no other one", SEAMS, POSSIBLE),
}


@dataclass(frozen=True, kw_only=True)
class ImgEditSettings(EditSettings):
    """The settings of ImgEdit-Bench."""

    exact: Annotated[bool, Setting("the mean grade of an edit is not rounded to two digits")] = False
    rubric: Annotated[str, rubric_name("; {type} stands for the type of the edit")] = "imgedit"


def items(settings: ImgEditSettings) -> list[BenchmarkItem]:
    """Return the items.  Raises `InputError`."""
    content = json_of(settings.data)
    if not (isinstance(content, Mapping) and content):
        raise InputError(f"{settings.data}: not an object of edits")
    found = []
    for key, edit in content.items():
        try:
            image_id, prompt, group = (str(edit[name]) for name in ("id", "prompt", "edit_type"))
            data = dict(zip(GRADES, POINTS[group], strict=True))
        except (KeyError, TypeError) as exc:
            raise InputError(
                f"{settings.data}, edit {key}: no id, prompt and known edit_type ({exc})"
            ) from None
        found.append(
            BenchmarkItem(
                key,
                prompt,
                key,
                questions_of(*GRADES),
                group,
                source=image_in(settings.sources, image_id),
                options=graded(settings, group, **data),
            )
        )
    return found


def values(settings: ImgEditSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the mean grade of each edit, rounded to two digits, by type."""
    means = [fmean(float(each) for each in answers.values()) for answers in images]
    return {f"{TYPES}{item.group}": means if settings.exact else [round(each, 2) for each in means]}


def derived(settings: ImgEditSettings, figures: Figures) -> Figures:
    """Return the mean over types."""
    means = [mean for name, mean in figures.items() if name.startswith(TYPES)]
    return {"overall": fmean(means)} if means else {}


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """
    Return the grades in the authors' result.json, by key.

    An edit without three grades is without answers.
    """
    content = json_of(path)
    of_id = {item.id: item for item in items}
    if not (isinstance(content, Mapping) and content.keys() & of_id.keys()):
        return None
    rows, without = list[QuestionEntry](), list[str]()
    for key in [key for key in content if key in of_id]:
        grades = grades_in(content[key])
        if len(grades) != len(GRADES):
            without.append(key)
            continue
        pairs = zip(GRADES, grades, strict=True)
        rows += [QuestionEntry(f"{path}, edit {key}", of_id[key], "", name, grade) for name, grade in pairs]
    found = in_rows(rows)
    found.images |= {key: [None] for key in without}
    if others := len(content.keys() - of_id.keys()):
        found.notes.append(f"grades of other edits: {others}")
    return found


def grades_in(answer: object) -> list[float]:
    """Return the grades from 1 to 5 that end the lines of an answer; none of an answer that is no text."""
    lines = answer.splitlines() if isinstance(answer, str) else []
    return [float(match[1]) for line in lines if (match := GRADE.fullmatch(line.strip()))]


IMGEDIT = Benchmark(
    "imgedit",
    "basic_edit.json, by key the id, the prompt and the edit_type",
    ImgEditSettings,
    Paper("GPT-4o", prompts=737),
    items,
    grades_from(1, 5),
    values,
    derived,
    {".json": released},
)
