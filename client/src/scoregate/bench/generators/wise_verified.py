"""
WISE_Verified: the same by the authors' update, with one grade.

WISE_Verified, the authors' update of April 2026, with some 200 new prompts, an open judge and one grade, 0
or 1. `overall` is 0.4 culture and 0.12 of each other category.

DATA is the folder `data_verified`, without its `merge.json`. The output of the rubric is `score`.

Metric: `judge`. Code that was read: [PKU-YuanGroup/WISE](https://github.com/PKU-YuanGroup/WISE) `eb51174`.
Licence of the data: none is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from scoregate.bench.answers import Answers, BenchmarkItem
from scoregate.bench.benchmark import Benchmark, Paper, Values
from scoregate.bench.generators.wise import RELEASED_KINDS, items, released, whole
from scoregate.bench.grades import JudgeSettings, grades_from, rubric_name
from scoregate.records import number as number_in

SHARES = {"culture": 0.4, **dict.fromkeys(("time", "space", "biology", "physics", "chemistry"), 0.12)}


@dataclass(frozen=True, kw_only=True)
class WiseVerifiedSettings(JudgeSettings):
    """The settings of WISE_Verified."""

    rubric: Annotated[str, rubric_name()] = "wise_verified"


def values(settings: WiseVerifiedSettings, item: BenchmarkItem, images: Sequence[Answers]) -> Values:
    """Return the grade of each picture, by category."""
    return {item.group: [float(answers[1]) for answers in images]}


def passed(cell: Any) -> float:
    """Return the grade 0 or 1.  Raises `ValueError`."""
    if (grade := number_in(cell)) not in (0, 1):
        raise ValueError(f"{cell!r} is not 0 or 1")
    return grade


READING = replace(grades_from(0, 1), parse=passed)
WISE_VERIFIED = Benchmark(
    "wise_verified",
    "the authors' folder data_verified, or a file of it",
    WiseVerifiedSettings,
    Paper("Qwen3.5-35B-A3B", prompts=1000),
    partial(items, outputs=("score",)),
    READING,
    values,
    partial(whole, SHARES),
    dict.fromkeys(RELEASED_KINDS, partial(released, parse=READING.parse)),
)
