"""Facts of each row from the data set's columns: people's rating, generator, item and skill."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

from scoregate.cli.datasets import Dataset
from scoregate.cli.evaluate.slices import values
from scoregate.cli.exits import UsageFault
from scoregate.records import Record

if TYPE_CHECKING:
    from scoregate.report.rows import Columns

ITEM = "prompt"  # the default of what generators share


@dataclass(frozen=True)
class Fact:
    """Facts of one row; *human* is NaN without a rating, *skill* has all tags, texts are None if empty."""

    human: float
    model: str | None
    item: str | None
    skill: Sequence[str]


@dataclass(frozen=True)
class Facts:
    """Facts by the row's number, and the number of dropped ratings."""

    of: dict[int, Fact]
    out_of_scale: int


def facts(dataset: Dataset, columns: "Columns", scale: tuple[float, float] | None) -> Facts:
    """
    Return the columns of all rows.

    Raises:
        UsageFault: no row has a column, or a rating is not a number.
    """
    from scoregate.evaluation import BadInput, Table

    rows = [  # without the pictures, which may be in the data set
        Record(row.number, {**row.columns, "prompt": row.prompt, "image": row.image}) for row in dataset
    ]
    table = Table(dataset.path, rows)
    try:
        human = table.numbers(columns.human).tolist() if columns.human else [nan] * len(rows)
        texts = [
            table.texts(column) if column else [None] * len(rows)
            for column in (columns.model, columns.item or ITEM)
        ]
        skills = table.each(columns.skill, values) if columns.skill else [[] for _ in rows]
    except BadInput as exc:
        raise UsageFault(str(exc)) from exc
    outside = {
        place
        for place, rating in enumerate(human)
        if scale and not (rating != rating or scale[0] <= rating <= scale[1])
    }
    kept = [nan if place in outside else rating for place, rating in enumerate(human)]
    found = {row.number: Fact(*cells) for row, *cells in zip(rows, kept, *texts, skills, strict=True)}
    return Facts(found, len(outside))
