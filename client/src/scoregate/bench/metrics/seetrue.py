"""
SeeTRUE: AUROC of metrics by source.

SeeTRUE (Yarom et al. 2023, [arXiv 2305.10400](https://arxiv.org/abs/2305.10400)): the
[AUROC](figures.md#auroc) of each source, their mean, and that of all pairs of picture and text. `sources`
counts each source's pairs.

DATA: `SeeTRUE.csv`: `image`, `text`, `label`, `dataset_source` (or `source`). Key of scores: `image` and
`text` (or `prompt`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from scoregate.bench.data import (
    JoinSettings,
    MetricBenchmark,
    columns,
    joins,
    mark,
    metrics_of,
    of_each,
    table_of,
    worth,
)
from scoregate.errors import ColumnError
from scoregate.evaluation.agreement import auroc
from scoregate.evaluation.arrays import Floats
from scoregate.evaluation.tables import first_of

KEYS = ({"image": "image", "text": "text"}, {"image": "image", "text": "prompt"})
SOURCES = ("dataset_source", "source")  # the authors' column, and a user's
DATA_COLUMNS = {"image", "text", "label", "original_dataset_id", *SOURCES}


def tables(settings: JoinSettings) -> dict[str, Any]:
    """Return a row for each metric, with the AUROC of each source, their mean, and that of all pairs."""
    table = table_of(settings, *KEYS)
    labels, sources = table.labels("label"), table.names(first_of(table, *SOURCES))
    rows, undefined = Counter(sources), dict[str, list[str]]()

    def figures(metric: str) -> dict[str, Any]:
        score, label, source = table.complete(worth(settings, table, metric), labels, [*sources])
        of_source, faults = by_source(score, label, source, rows)
        for name, fault in faults.items():
            if not of_source:
                with columns(table.place, metric=f"{metric}, source {name}", label=f"label, source {name}"):
                    raise fault
            undefined.setdefault(name, []).append(f"{metric}: {fault.why}")
        return (
            {"mean": {name: of_source.get(name) for name in rows}}
            | {"of sources": fmean(of_source.values()), "all": auroc(score, label).auroc}
            | {"n": len(score), "dropped": table.dropped, **mark(table)}
        )

    found = of_each(
        settings, table.place, [name for _, name in metrics_of(settings, [table], DATA_COLUMNS)], figures
    )
    described = [
        {"source": name, "rows": count}
        | ({"undefined": "; ".join(undefined[name])} if name in undefined else {})
        for name, count in rows.items()
    ]
    return {**joins(table), "metrics": found, "sources": described}


def by_source(
    score: Floats, label: Floats, source: Sequence[str], names: Iterable[str]
) -> tuple[dict[str, float], dict[str, ColumnError]]:
    """Return the AUROC of each source, and why others have none, such as that all labels are the same."""
    found, faults = dict[str, float](), dict[str, ColumnError]()
    for name in names:
        chosen = [place for place, each in enumerate(source) if each == name]
        try:
            found[name] = auroc(score[chosen], label[chosen]).auroc
        except ColumnError as exc:
            faults[name] = exc
    return found, faults


SEETRUE = MetricBenchmark(
    "seetrue", "SeeTRUE.csv: image, text, label, dataset_source (or source)", JoinSettings, tables
)
