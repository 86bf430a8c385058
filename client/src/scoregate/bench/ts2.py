"""`scoregate bench ts2`: T2IscoreScore (Saxon et al. 2024)."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scoregate.bench.data import add_data, joins, mark, metrics_of, of_each, table_of, worth
from scoregate.cli.arguments import add_settings
from scoregate.evaluation import ts2
from scoregate.evaluation.figures.metrics import SKIP_GRAPH, VERSION, VERSIONS, Version, version
from scoregate.settings import seconds as positive
from scoregate.settings import setting

OWN = {"id", "image_id", "target_prompt", "file_name", "image_source", "rank"}  # no metrics
SKIPPED = ("164",)  # by the paper's tables
FIGURES = ("rank", "sep", "delta", "delta_raw")


@dataclass(frozen=True, kw_only=True)
class Versions:
    """Settings of the authors' definitions."""

    version: Version = setting(VERSION, default="released", parse=version, choices=VERSIONS)
    skip_graph: Sequence[str] | None = setting(SKIP_GRAPH, default=None, metavar="GRAPH", several=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(parser, "metadata.csv: id, rank; or a file that has these and scores")
    add_settings(parser, Versions)
    what = "mean time of a picture, for the table; may be given several times"
    parser.add_argument("--seconds", action="append", type=seconds, default=[], metavar="METRIC=S", help=what)


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return a table with a row for each metric."""
    table = table_of(arguments, {"file_name": "file_name"}, {"file_name": "image"})
    graphs, nodes = table.names("id"), table.names("rank")
    skip = arguments.skip_graph or (SKIPPED if arguments.version == "released" else ())
    skip = [name for name in skip if arguments.skip_graph or name in graphs]
    times = dict(arguments.seconds)
    metrics = [name for _, name in metrics_of(arguments, [table], OWN, seconds=times)]

    def figures(metric: str) -> dict[str, Any]:
        found = ts2(worth(arguments, table, metric), graphs, nodes, arguments.version, skip)
        parts = {"all": vars(found)} | found.partitions
        return (
            {figure: {part: values[figure] for part, values in parts.items()} for figure in FIGURES}
            | {"std": found.std, "graphs": found.graphs, "images": found.images, "dropped": found.dropped}
            | {"seconds": times.get(metric), **mark(table)}
        )

    rows = of_each(arguments, table.path, metrics, figures, graph="id", node="rank")
    return {"version": arguments.version, "skipped": [*skip], **joins(table), "metrics": rows}


def seconds(text: str) -> tuple[str, float]:
    """Return a metric and its time."""
    name, equals, value = text.rpartition("=")
    if not (equals and name):
        raise argparse.ArgumentTypeError("of the form METRIC=SECONDS")
    return name, positive(value)
