"""
KRIS-Bench: editors by dimension of knowledge, by a judge.

KRIS-Bench (Wu et al. 2025, [arXiv 2505.16707](https://arxiv.org/abs/2505.16707)): 1,267 edits of 20
categories with grades from 1 to 5 of visual consistency (VC), visual quality (VQ), following the
instruction (IF), and in knowledge categories of plausibility (KP). A grade counts (grade - 1) · 25 points.
All figures are means over grades: of a dimension, of a kind of knowledge, and `overall`.

* DATA has the authors' folders `CATEGORY/annotation.json` with their pictures. `--prompts` names the
  picture to edit as `source`, or several as `references`. A generator's folder has `CATEGORY/ID.jpg`, and
  after the authors' evaluation `CATEGORY/metrics.json`, whose grades are then read instead. An edit without
  all of its grades is left out; BAGEL's code counts those that it has.
* The rubrics are `kris_edit`, `kris_knowledge`, `kris_view`, whose judge gets the right result too, and
  `kris_series` for frames and elements. For four of your own give `--rubric "mine_{type}"`. The authors'
  judge gives each grade in a call of its own, and gets frames with the generated one in its place, which is
  the last one here.
* The authors publish no program for the means. The dimensions and means are those of
  [BAGEL](https://github.com/ByteDance-Seed/Bagel)'s evaluation, `eval/gen/kris/summarize.py`, which was
  read in a copy.

Metric: `judge`. Code that was read: [mercurystraw/Kris_Bench](https://github.com/mercurystraw/Kris_Bench)
`2114fec`, without the means, hence **unverified**. Licence of the data: none is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from scoregate.bench.answers import FOLDER_KIND, Answers, BenchmarkItem, Found, QuestionEntry, in_rows
from scoregate.bench.benchmark import PART, Benchmark, Paper, Values
from scoregate.bench.grades import JudgeSettings, graded, grades_from, image_in, questions_of, rubric_name
from scoregate.errors import InputError
from scoregate.records import json_of

# Each output has a short name in the tables.
SHORT_NAMES = {"consistency": "VC", "quality": "VQ", "instruction": "IF", "knowledge": "KP"}
FACTUAL, CONCEPTUAL, PROCEDURAL = "factual", "conceptual", "procedural"
DIMENSIONS = {  # the kind of knowledge, and the categories
    "attribute perception": (
        FACTUAL,
        ("count_change", "color_change", "size_adjustment", "part_completion", "anomaly_correction"),
    ),
    "spatial perception": (FACTUAL, ("viewpoint_change", "position_movement")),
    "temporal prediction": (FACTUAL, ("temporal_prediction",)),
    "social science": (CONCEPTUAL, ("humanities", "practical_knowledge")),
    "natural science": (
        CONCEPTUAL,
        ("biology", "chemistry", "geography", "medicine", "mathematics", "physics"),
    ),
    "logical reasoning": (PROCEDURAL, ("abstract_reasoning", "rule-based_reasoning")),
    "instruction decomposition": (
        PROCEDURAL,
        ("multi-element_composition", "multi-instruction_execution"),
    ),
}
DIMENSION_OF = {category: name for name, (_, of) in DIMENSIONS.items() for category in of}
WITH_KNOWLEDGE = ("social science", "natural science", "logical reasoning")  # have a fourth grade
WITH_ANSWER = "viewpoint_change"  # the judge gets the right picture, too


@dataclass(frozen=True, kw_only=True)
class KrisSettings(JudgeSettings):
    """The settings of KRIS-Bench."""

    rubric: Annotated[str, rubric_name("; {type} stands for edit, knowledge, view or series")] = "kris_{type}"


def items(settings: KrisSettings) -> list[BenchmarkItem]:
    """Return the items CATEGORY/ID.  Raises `InputError`."""
    found = []
    for category in sorted(DIMENSION_OF):
        file = settings.data / category / "annotation.json"
        edits = json_of(file) if file.is_file() else {}
        if not isinstance(edits, Mapping):
            raise InputError(f"{file}: not an object of edits")
        found += [item_of(settings, category, id, edit) for id, edit in edits.items()]
    if not found:
        raise InputError(f"{settings.data}: there is no file CATEGORY/annotation.json")
    return found


def item_of(settings: KrisSettings, category: str, id: str, edit: Mapping[str, Any]) -> BenchmarkItem:
    """Return an item with the grades of its dimension, and its pictures.  Raises `InputError`."""
    dimension = DIMENSION_OF[category]
    outputs = [name for name in SHORT_NAMES if name != "knowledge" or dimension in WITH_KNOWLEDGE]
    if missing := {"ori_img", "gt_img", "ins_en", "explain_en"} - {*edit}:
        raise InputError(f"{settings.data}/{category}, edit {id}: there is no {min(missing)}")
    given, data = edit["ori_img"], dict[str, str]()
    series = given if isinstance(given, list) else []
    kind = "series" if series else "view" if category == WITH_ANSWER else "edit"
    if dimension in WITH_KNOWLEDGE:
        kind, data = "knowledge", {"explanation": str(edit["explain_en"])}
    files = [*series, *([edit["gt_img"]] if kind == "view" else [])]
    return BenchmarkItem(
        f"{category}/{id}",
        str(edit["ins_en"]),
        f"{category}/{id}",
        questions_of(*outputs),
        dimension,
        source=None if series else image_in(settings.data, f"{category}/{given}"),
        references=[image_in(settings.data, f"{category}/{name}") for name in files],
        options=graded(settings, kind, **data),
    )


def values(settings: KrisSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the points (grade - 1) * 25 of all grades, by dimension, by kind of knowledge, and of all."""
    found: dict[str, list[float]] = {}
    for answers in images:
        for id, question in item.questions.items():
            points = (float(answers[id]) - 1) * 25
            knowledge, _ = DIMENSIONS[item.group]
            tables = (f"{table}{PART}{item.group}" for table in ("average", SHORT_NAMES[question.text]))
            for name in ("overall", knowledge, *tables):
                found.setdefault(name, []).append(points)
    return found


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found | None:
    """
    Return the grades in the authors' folder of a generator, CATEGORY/metrics.json.

    An edit without all of its grades is without answers.

    Raises:
        InputError: a file has another form, or a grade is none.
    """
    rows, without, files = list[QuestionEntry](), list[str](), dict[str, Mapping[str, Any]]()
    for item in items:
        category, _, id = item.id.partition("/")
        file = path / category / "metrics.json"
        if category not in files and file.is_file():
            files[category] = json_of(file)
        try:
            if id not in (edits := files.get(category, {})):
                continue
            edit = {} if edits[id] is None else edits[id]
            cells = {name: edit.get(f"{question.text}_score") for name, question in item.questions.items()}
            if None in cells.values():
                without.append(item.id)
                continue
            grades = {name: KRIS.reading.parse(cell) for name, cell in cells.items()}
        except (AttributeError, TypeError, ValueError) as exc:
            raise InputError(f"{file}, edit {id}: not of the form of KRIS-Bench ({exc})") from None
        rows += [
            QuestionEntry(f"{file}, edit {id}", item, "", str(name), grade) for name, grade in grades.items()
        ]
    found = in_rows(rows)
    found.images |= {id: [None] for id in without}
    known = {item.id for item in items}
    if others := sum(f"{category}/{id}" not in known for category, of in files.items() for id in of):
        found.notes.append(f"grades of other edits: {others}")
    return found if files else None


KRIS = Benchmark(
    "kris",
    "the authors' folder KRIS_Bench: CATEGORY/annotation.json and the pictures",
    KrisSettings,
    Paper("GPT-4o", prompts=1267),
    items,
    grades_from(1, 5),
    values,
    released={FOLDER_KIND: released},
    notes=("unverified: the authors' code has no means, which were read in BAGEL's",),
)
