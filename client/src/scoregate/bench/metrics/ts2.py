"""
T2IscoreScore: rank, separation and delta of metrics, by subset.

[T2IscoreScore](figures.md#ts2): a row for each metric.

`--version` is `released` by default, without graph 164, as in the paper. `--seconds METRIC=S` adds the time
of a picture.

DATA: `id`, `rank`, as in `metadata.csv`. Key of scores: `file_name`, or `image` of a result of `batch`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from scoregate.bench.data import (
    JoinSettings,
    MetricBenchmark,
    joins,
    mark,
    metrics_of,
    of_each,
    table_of,
    worth,
)
from scoregate.evaluation.figures.metrics import SKIP_GRAPH, VERSION, version_of
from scoregate.evaluation.ts2 import Version, ts2
from scoregate.settings import Setting, SettingError
from scoregate.settings import seconds as positive

DATA_COLUMNS = {"id", "image_id", "target_prompt", "file_name", "image_source", "rank"}  # no metrics
SKIPPED_GRAPHS = ("164",)  # the paper's tables skip them
FIGURES = ("rank", "sep", "delta", "delta_raw")


def time_of(text: str) -> tuple[str, float]:
    """Return a metric and its time."""
    name, equals, value = text.rpartition("=")
    if not (equals and name):
        raise SettingError("of the form METRIC=SECONDS")
    return name, positive(value)


@dataclass(frozen=True, kw_only=True)
class Ts2BenchmarkSettings(JoinSettings):
    """The settings of T2IscoreScore (Saxon et al. 2024): the authors' definitions, and times."""

    version: Annotated[Version, Setting(VERSION, parse=version_of)] = "released"
    skip_graph: Annotated[Sequence[str] | None, Setting(SKIP_GRAPH, metavar="GRAPH", several=True)] = None
    seconds: Annotated[
        Sequence[tuple[str, float]],
        Setting(
            "mean time of a picture, for the table; may be given several times",
            metavar="METRIC=S",
            parse=time_of,
            several=True,
        ),
    ] = ()


def tables(settings: Ts2BenchmarkSettings) -> dict[str, Any]:
    """Return a table with a row for each metric."""
    table = table_of(settings, {"file_name": "file_name"}, {"file_name": "image"})
    graphs, nodes = table.names("id"), table.names("rank")
    skip = settings.skip_graph or (SKIPPED_GRAPHS if settings.version == "released" else ())
    skip = [name for name in skip if settings.skip_graph or name in graphs]
    times = dict(settings.seconds)
    metrics = [name for _, name in metrics_of(settings, [table], DATA_COLUMNS, seconds=times)]

    def figures(metric: str) -> dict[str, Any]:
        found = ts2(worth(settings, table, metric), graphs, nodes, settings.version, skip)
        parts = {"all": vars(found)} | found.partitions
        return (
            {figure: {part: values[figure] for part, values in parts.items()} for figure in FIGURES}
            | {"std": found.std, "graphs": found.graphs, "images": found.images, "dropped": found.dropped}
            | {"seconds": times.get(metric), **mark(table)}
        )

    rows = of_each(settings, table.place, metrics, figures, graph="id", node="rank")
    return {"version": settings.version, "skipped": [*skip], **joins(table), "metrics": rows}


TS2 = MetricBenchmark(
    "ts2", "metadata.csv: id, rank; or a file that has these and scores", Ts2BenchmarkSettings, tables
)
