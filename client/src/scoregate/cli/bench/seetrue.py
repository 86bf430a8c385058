"""`scoregate bench seetrue`: SeeTRUE (Yarom et al. 2023), pictures with right and wrong texts."""

import argparse
from statistics import fmean
from typing import Any

from scoregate.cli.bench.data import add_data, columns, metrics_of, table_of, worth

HELP = "SeeTRUE: AUROC of metrics by source"
KEYS = ({"image": "image", "text": "text"}, {"image": "image", "text": "prompt"})
OWN = {"image", "text", "label", "source"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(parser, "SeeTRUE.csv: image, text, label, source")


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return a row for each metric, with the AUROC of each source, their mean, and that of all pairs."""
    from scoregate.evaluation import auroc

    table = table_of(arguments, *KEYS)
    labels, sources = table.labels("label"), table.names("source")
    found, rows = [], dict.fromkeys(sources, 0)
    for source in sources:
        rows[source] += 1
    for metric in metrics_of(arguments, table, OWN):
        score, label, source = table.complete(worth(arguments, table, metric), labels, [*sources])
        of_source = {}
        for name in rows:
            chosen = [place for place, each in enumerate(source) if each == name]
            with columns(table.path, metric=f"{metric}, source {name}", label=f"label, source {name}"):
                of_source[name] = auroc(score[chosen], label[chosen]).auroc
        with columns(table.path, metric=metric):
            pooled = auroc(score, label).auroc
        found.append(
            {"metric": metric, "mean": of_source, "of sources": fmean(of_source.values()), "all": pooled}
            | {"n": len(score), "dropped": table.dropped}
        )
    return {"metrics": found, "sources": [{"source": name, "rows": count} for name, count in rows.items()]}
