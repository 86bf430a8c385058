"""Two captions and two pictures of an item: text, image and group score by tag, for Winoground and EqBen."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path, PurePath
from statistics import fmean
from typing import Annotated, Any

from scoregate.bench.data import ScoreSettings, Tags, columns, mark, metrics_of, worth
from scoregate.errors import ColumnError, InputError
from scoregate.evaluation.bootstrap import Bootstrap, Sample, compared, uncertainty
from scoregate.evaluation.tables import Table, rows_of, text
from scoregate.evaluation.winoground import CHANCE, choices, sample_of
from scoregate.settings import Setting

RowPlaces = Sequence[tuple[str, str, str]]  # item, caption and picture of each row
Right = Mapping[str, tuple[bool, bool]]  # are the captions, and the pictures, of an item chosen rightly?
Contents = Mapping[str, Mapping[str, str]]  # captions and pictures of an item, such as `caption 0`

LABEL = re.compile(r"(.+)_c([01])_i([01])")  # Winoground's released scores have it
DATA_COLUMNS = {"item", "id", "caption", "picture", "label"}
UNNAMED_COLUMN = "score"  # a column that is named as its file


@dataclass(frozen=True, kw_only=True)
class PairSettings(Bootstrap, ScoreSettings):
    """Settings of a benchmark of items with two captions and two pictures."""

    scores: Annotated[
        Sequence[Path],
        Setting(
            "scores with label (ITEM_c0_i1), or item, caption and picture (0 or 1);"
            " may be given several times",
            metavar="FILE",
            several=True,
        ),
    ] = field()  # required; without a field it would have the default of `ScoreSettings`


def contents_of(values: Mapping[str, Any], caption: str, image: str) -> dict[str, str]:
    """Return an item's captions and pictures; *caption* and *image* are its columns without the number."""
    kinds = (("caption", caption), ("picture", image))
    cells = {f"{kind} {n}": values.get(f"{column}{n}") for (kind, column), n in product(kinds, (0, 1))}
    return {name: cell for name, cell in cells.items() if isinstance(cell, str)}


def pair_tables(
    settings: PairSettings, data: Table, items: Sequence[str], tags: Tags, contents: Contents
) -> dict[str, Any]:
    """
    Return a row for each metric and tag, and the differences of metrics on the items that all of them have.

    Args:
        data, items: the benchmark, and the item of each of its rows.
        tags, contents: of all items.

    Raises:
        InputError: two files have a metric of the same name, or as `metrics_of` and `right_choices`.
    """
    found: dict[str, Right] = {}
    turned: dict[str, dict[str, bool]] = {}
    for table, metric in metrics_of(settings, map(rows_of, settings.scores), DATA_COLUMNS):
        name = PurePath(table.place).name.partition(".")[0] if metric == UNNAMED_COLUMN else metric
        if name in found:
            raise InputError(f"{table.place}: another file has a metric {name}, too")
        with columns(table.place, metric=metric, image="picture"):
            places = placed(table)
            check(table, places, contents)
            found[name] = right_choices(worth(settings, table, metric), places, tags)
        turned[name] = mark(table)
    of_items = data.names(settings.cluster) if settings.cluster else items
    sample = partial(sample_of, cluster=dict(zip(items, of_items, strict=True)))
    rows = [
        row | turned[name]
        for name, right in found.items()
        for row in by_tag(settings, name, right, tags, sample)
    ]
    drawn_by = {"seed": settings.seed, "cluster": settings.cluster or "item"}
    return (
        {"items": len(tags)}
        | (drawn_by if settings.bootstrap else {})
        | {"metrics": [{"metric": "chance", "tag": "all", **CHANCE}, *rows]}
        | compared(settings, found, sample, "item")
    )


def placed(table: Table) -> RowPlaces:
    """Return item, caption and picture of each row."""
    held = table.records[0].values
    if "label" not in held:
        items = table.names("item" if "item" in held else "id")
        return list(zip(items, table.names("caption"), table.names("picture"), strict=True))
    found = []
    for label in table.names("label"):
        parts = LABEL.fullmatch(label)
        if not parts:
            raise InputError(f"{table.place}, column label: {label!r} is not of the form ITEM_c0_i1")
        found.append((parts[1], parts[2], parts[3]))
    return found


def check(table: Table, places: RowPlaces, contents: Contents) -> None:
    """
    Check that lines of `scoregate batch` have the captions and the pictures of their items.

    Without a column `id` their items may be rows of a data set, which are no items of the benchmark.

    Raises:
        ColumnError: they differ, or without an `id` nothing can be compared.
    """
    for record, (item, caption, image) in zip(table.records, places, strict=True):
        values = record.values
        if "sha256" not in values:  # no line of `scoregate batch`
            continue
        own = text(values.get("id"))
        if own not in (None, item):
            raise ColumnError("item", f"row {record.number}: item {item} has the id {own}")
        known, wrong = contents.get(item, {}), list[str]()
        if (name := f"caption {caption}") in known and known[name].strip() != str(values["prompt"]).strip():
            wrong.append(name)
        if own is None and (name := f"picture {image}") in known:
            wrong += [name] if PurePath(known[name]).stem != PurePath(str(values["image"])).stem else []
        if wrong or (own is None and not known):
            why = f"the benchmark has another {wrong[0]}" if wrong else "nothing says which item this is"
            raise ColumnError("item", f"row {record.number}, item {item}: {why}; number the items in `id`")


def right_choices(scores: Any, places: RowPlaces, tags: Tags) -> Right:
    """Return the right choices of each complete item.  Raises `ColumnError`."""
    if unknown := [item for item, _, _ in places if item not in tags]:
        raise ColumnError("item", f"the benchmark has no item {unknown[0]}")
    rows = [(score, *place) for score, place in zip(scores, places, strict=True) if score == score]
    if not rows:
        raise ColumnError("metric", "no row has a value")
    return choices(*map(list, zip(*rows, strict=True)))


def by_tag(
    settings: PairSettings,
    metric: str,
    right: Right,
    tags: Tags,
    sample_of: Callable[[Right], Sample],
) -> list[dict[str, Any]]:
    """Return the shares of right choices over all items, and over those of each tag, with intervals."""
    names = dict.fromkeys(tag for each in tags.values() for tag in each)
    of_tag = {"all": list(right)} | {tag: [item for item in right if tag in tags[item]] for tag in names}
    return [
        {"metric": metric, "tag": tag, **shares([right[item] for item in items])}
        | {"items": len(items)}
        | ({"incomplete": len(tags) - len(items)} if tag == "all" else {})
        | uncertainty(settings, sample_of({item: right[item] for item in items}), len(items), "item")
        for tag, items in of_tag.items()
        if items
    ]


def shares(right: Sequence[tuple[bool, bool]]) -> dict[str, float]:
    text, image = zip(*right, strict=True)
    return {
        "text": fmean(text),
        "image": fmean(image),
        "group": fmean(map(all, right)),
    }
