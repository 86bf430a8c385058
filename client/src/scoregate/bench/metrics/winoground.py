"""
Winoground: text, image and group score of metrics by tag.

[Winoground](figures.md#winoground). A file of scores has four rows for each item, with a `label` as in the
released scores (`ITEM_c0_i1`: caption 0 with picture 1), or `item`, `caption` and `picture`, as of [`batch
--matrix`](cli.md#batch) over rows with the benchmark's `id`.

`--tags new_tag_assignments.json` has the tags of Diwan et al. 2022 ([arXiv
2211.00768](https://arxiv.org/abs/2211.00768)).

DATA: `examples.jsonl`: `id`, `collapsed_tag`, `num_main_preds`. Key of scores: `label`, or `item`,
`caption` and `picture`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from scoregate.bench.data import MetricBenchmark
from scoregate.bench.pairs import PairSettings, contents_of, pair_tables
from scoregate.errors import InputError
from scoregate.evaluation.tables import rows_of
from scoregate.records import json_of
from scoregate.settings import Setting

PREDICATES = {"1": "1 Main Pred", "2": "2 Main Preds"}


@dataclass(frozen=True, kw_only=True)
class WinogroundBenchmarkSettings(PairSettings):
    """The settings of Winoground."""

    tags: Annotated[
        Path | None,
        Setting("new_tag_assignments.json: the tags of Diwan et al. 2022 for each id", metavar="FILE"),
    ] = None


def tables(settings: WinogroundBenchmarkSettings) -> dict[str, Any]:
    """Return text, image and group score of each metric, by tag."""
    table, tags = rows_of(settings.data), dict[str, list[str]]()
    for item, record in zip(table.names("id"), table.records, strict=True):
        own = [record.values.get("collapsed_tag"), PREDICATES.get(str(record.values.get("num_main_preds")))]
        tags[item] = [tag for tag in own if tag]
    more = json_of(settings.tags) if settings.tags else {}
    if not (isinstance(more, Mapping) and all(isinstance(each, list) for each in more.values())):
        raise InputError(f"{settings.tags}: not an object with a list of tags for each item")
    for item, names in more.items():
        if item not in tags:
            raise InputError(f"{settings.tags}: {settings.data} has no item {item}")
        tags[item] += names or ["No Tag"]
    rows = zip(table.names("id"), table.records, strict=True)
    contents = {item: contents_of(record.values, "caption_", "image_") for item, record in rows}
    return pair_tables(settings, table, table.names("id"), tags, contents)


WINOGROUND = MetricBenchmark(
    "winoground", "examples.jsonl: id, and tags if it has them", WinogroundBenchmarkSettings, tables
)
