"""
DPG-Bench: generators by category, from sheets of pictures.

DPG-Bench (Hu et al. 2024, [arXiv 2403.05135](https://arxiv.org/abs/2403.05135)): 1,065 long prompts with
four pictures each, on sheets of 2 x 2. A tile has the share of its questions with the answer yes. A prompt
has the mean of its tiles.

The paper's answers are mPLUG-large's, which is not served here. Every table by another model says so. The
authors' `…_detail.txt`, with mPLUG's answers, is read as it is.

What the released script does, and the option that does otherwise:

* It skips the first row of the file, and drops the first item if that was its only row, or if another
  question depends on it. `--first-row`
* A question counts 0 if a parent counts 0 at that time, in the order of the file. `--dependencies direct`:
  if a parent's own answer is no; `none`: never
* Means of categories ignore dependencies, and use the last tile alone. `--categories tiles`: all tiles, so
  a prompt with more of them counts more
* Only the answer `yes` is right, exactly. `--any-yes`: also `Yes.`, or `yes, it is`

The script also drops a prompt if one of its pictures has no answers. Here `CAUTION` counts these.

Metric: `dsg`. Code that was read: [TencentQQGYLab/ELLA](https://github.com/TencentQQGYLab/ELLA) `3c228f1`.
Licence of the data: Apache 2.0 of the repository.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Annotated

from scoregate.bench.answers import (
    YES_NO,
    Answers,
    BenchmarkItem,
    Found,
    Question,
    QuestionEntry,
    in_rows,
    is_yes,
)
from scoregate.bench.benchmark import PART, Benchmark, Paper, SheetSettings, Values
from scoregate.errors import InputError, named
from scoregate.evaluation.tables import rows_of
from scoregate.records import Record
from scoregate.settings import Setting

DEPENDENCIES = ("released", "direct", "none")
CATEGORIES = ("released", "tiles")
DETAIL = re.compile(r"(.*), \((\d+), (\d+), (\d+), \d+\), (.*)")  # a line of the authors' file of answers


@dataclass(frozen=True, kw_only=True)
class DpgSettings(SheetSettings):
    """The settings of DPG-Bench."""

    first_row: Annotated[bool, Setting("use the first row of DATA, too, which the released script skips")] = (
        False
    )
    dependencies: Annotated[
        str,
        Setting(
            "a question counts 0 after a parent that counts 0 so far (released), that is a no (direct),"
            " or never (default released)",
            choices=DEPENDENCIES,
        ),
    ] = "released"
    categories: Annotated[
        str,
        Setting(
            "means of categories: the last tile's answers alone (released), or as the score, of all tiles"
            " (default released)",
            choices=CATEGORIES,
        ),
    ] = "released"
    any_yes: Annotated[bool, Setting("an answer such as `Yes.` is a yes, not exactly `yes` alone")] = False


def items(settings: DpgSettings) -> list[BenchmarkItem]:
    """
    Return the items; of one whose rows are apart the last ones count, as in the released script.

    One whose only row is the first one that is skipped is no item with generators.

    Raises:
        InputError: a row has not the columns, or there is no question.
    """
    table = rows_of(settings.data)
    rows = zip(table.names("item_id"), table.records, strict=True)
    found: dict[str, BenchmarkItem] = {}
    for id, group in groupby(rows, key=lambda row: row[0]):
        records = [record for _, record in group]
        used = [each for each in records if settings.first_row or each.number != table.records[0].number]
        questions = dict(question_of(settings.data, record) for record in used)
        if questions or not settings.answers:
            found[id] = BenchmarkItem(id, str(records[0].values.get("text") or ""), id, questions)
    if not found:
        raise InputError(
            f"{settings.data}: there is no question after the first row; {named('first_row')} uses it"
        )
    return [*found.values()]


def question_of(path: Path, record: Record) -> tuple[int, Question]:
    """Return the number of a row's question, and the question.  Raises `InputError`."""
    values, place = record.values, f"{path}, row {record.number}"
    try:
        parents = tuple(int(each) for each in str(values["dependency"]).split(","))
        id = int(values["proposition_id"])
        name, tag = str(values["question_natural_language"]), str(values["tuple"]).partition("(")[0].strip()
    except KeyError as exc:
        raise InputError(f"{place}: no column {exc.args[0]}") from None
    except ValueError:
        raise InputError(f"{place}: proposition_id or dependency is no number") from None
    return id, Question(name, parents=tuple(filter(None, parents)), tag=tag)


def values(settings: DpgSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the mean score over the tiles, and the right answers by category; none without a parent."""
    right = [
        {id: float(is_yes(answers[id], "yes", any_form=settings.any_yes)) for id in item.questions}
        for answers in images
    ]
    try:
        counted = [zeroed(item.questions, each, settings.dependencies) for each in right]
    except KeyError:
        return {}
    found: dict[str, list[float]] = {"overall": [fmean(map(fmean, map(dict.values, counted)))]}
    for of_tile in counted if settings.categories == "tiles" else right[-1:]:
        for id, value in of_tile.items():
            tag = item.questions[id].tag
            found.setdefault(tag.partition("-")[0].strip(), []).append(value)
            found.setdefault(f"categories{PART}{tag}", []).append(value)
    return found


def zeroed(
    questions: Mapping[int, Question], right: Mapping[int, float], dependencies: str
) -> dict[int, float]:
    """
    Return what each question counts.

    The released script sets a question to 0 if a parent is 0 by then, in the order of the file.  So a 0 is
    carried on to the children that come after it.

    Raises:
        KeyError: a parent has no answer; the released script drops the item then.
    """
    counted = dict(right)
    for id, question in questions.items():
        of_parents = counted if dependencies == "released" else right
        if dependencies != "none" and any(of_parents[parent] == 0 for parent in question.parents):
            counted[id] = 0.0
    return counted


def released(path: Path, items: Sequence[BenchmarkItem]) -> Found:
    """
    Return the answers in the released script's `…_detail.txt`: picture, box of the tile, question and answer.

    Raises:
        InputError: a line has another form, or is about no item or question.
    """
    of_id = {item.id: item for item in items}
    rows = list[QuestionEntry]()
    for number, line in enumerate(path.read_text("utf-8", errors="replace").strip("\n").split("\n"), 1):
        place = f"{path}, line {number}"
        parts = DETAIL.fullmatch(line)
        left, top, right = map(int, parts.groups()[1:4]) if parts else (0, 0, 0)
        if not parts or left >= right:
            raise InputError(
                f"{place}: not of the form picture, (left, top, right, bottom), question, answer"
            )
        if (item := of_id.get(Path(parts[1]).name.partition(".")[0])) is None:
            raise InputError(f"{place}: the benchmark has no item of the picture {parts[1]}")
        texts = [each.text for each in item.questions.values() if parts[5].startswith(f"{each.text}, ")]
        question = max(texts, key=len, default=parts[5])
        side = right - left
        tile = f"{top // side}{left // side}"
        rows.append(QuestionEntry(place, item, tile, question, parts[5].removeprefix(f"{question}, ")))
    return in_rows(rows)


DPG = Benchmark(
    "dpg",
    "dpg_bench.csv",
    DpgSettings,
    Paper("mPLUG-large", prompts=1065, images=4),
    items,
    YES_NO,
    values,
    released={".txt": released},
)
