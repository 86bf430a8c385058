"""
EqBen: text, image and group score of metrics by source.

EqBen (Wang et al. 2023, [arXiv 2303.14465](https://arxiv.org/abs/2303.14465)), with scores as for
Winoground. For `batch --matrix`, number the items in a column `id`, from 0 in the order of the file. Tags
are the sources, named by the folders of the pictures.

DATA: `all_select.json`: `image0`. Key of scores: as `winoground`.
"""

from pathlib import Path
from typing import Any

from scoregate.bench.data import MetricBenchmark
from scoregate.bench.pairs import PairSettings, contents_of, pair_tables
from scoregate.evaluation.tables import rows_of

KUBRIC = "eqbenkubric"  # its three parts are also one


def tables(settings: PairSettings) -> dict[str, Any]:
    """Return text, image and group score of each metric, by source.  Items are numbered from 0."""
    table = rows_of(settings.data)
    sources = [Path(name).parts[0] for name in table.names("image0")]
    of_items = {str(place): tags(source) for place, source in enumerate(sources)}
    contents = [contents_of(record.values, "caption", "image") for record in table.records]
    return pair_tables(settings, table, [*of_items], of_items, dict(zip(of_items, contents, strict=True)))


def tags(source: str) -> list[str]:
    return [source, KUBRIC] if source.startswith(f"{KUBRIC}_") else [source]


EQBEN = MetricBenchmark(
    "eqben",
    "all_select.json: items in order, with the picture image0 in the folder of its source",
    PairSettings,
    tables,
)
