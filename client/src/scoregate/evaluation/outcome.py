"""The outcome of a figure of `scoregate evaluate`, with its slices, and what figures share."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from scoregate.errors import InputError, named
from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.bootstrap import Drawings, Drawn, caution, differences, interval
from scoregate.evaluation.tables import GENERATOR, Table, joined, read_table, values
from scoregate.settings import Column, MetricNames, Setting, ends_of_scale, generator_paths

TABLE = ".csv, .jsonl or .parquet, also .gz, or a result of `scoregate batch`, also a folder of them"
LOWER_HELP = "of these scores; a result of `scoregate batch` says it by itself"


@dataclass(frozen=True)
class FigureOutcome:
    """
    A figure.

    Attributes:
        content: of its JSON.
        draw: draws it on Matplotlib's axes.
        size: how many things it is of, and the word for one; None for rows.
    """

    content: dict[str, Any]
    draw: Callable[[Any], None]
    drawn: Drawn | None = None
    size: tuple[int, str] | None = None


def outcome(
    table: Table,
    draw: Callable[[Any], None],
    *figures: Any,
    drawn: Drawn | None = None,
    cluster: str = "row",
    size: tuple[int, str] | None = None,
) -> FigureOutcome:
    """
    Merge dataclasses and objects into one, with the numbers of dropped rows and of what was drawn.

    Args:
        cluster: what was drawn.
    """
    content: dict[str, Any] = {}
    for each in figures:
        content |= each if isinstance(each, dict) else asdict(each)
    more: dict[str, Any] = {"unquoted": table.unquoted, "dropped": content.get("dropped", table.dropped)}
    if drawn:
        more |= {"cluster": cluster, "clusters": drawn.sample.units}
        content |= {"interval": ends} if (ends := interval(drawn)) else {}
        if cluster != "row":
            size = drawn.sample.units, cluster if cluster in ("item", "prompt") else "cluster"
    return FigureOutcome(
        content | more | ({"lower_is_better": True} if table.turned else {}), draw, drawn, size
    )


@dataclass(frozen=True, kw_only=True)
class FigureSettings:
    """Settings of every figure."""

    table: Annotated[Path, Setting(TABLE, ("--scores",), metavar="FILE")]
    by: Annotated[
        str | None, Column("the same figures for each value of it; a list counts in each of its values")
    ] = None

    def columns(self, argument: str) -> str:
        """Return the columns of an *argument*, for an error about them."""
        found = getattr(self, argument, None) or argument
        return ", ".join(found) if isinstance(found, tuple) else found

    @property
    def place(self) -> str:
        """The files, for errors."""
        return str(self.table)

    def read(self) -> Table:
        """Return the table.  Raises `InputError`, `OSError`."""
        return read_table(self.table)


@dataclass(frozen=True, kw_only=True)
class OfScores(FigureSettings):
    """Settings of a figure of scores, which may be results of several generators."""

    table: Annotated[Path | None, Setting(TABLE, ("--scores",), metavar="FILE")] = None  # type: ignore[assignment]
    results: Annotated[
        Sequence[str],
        Setting(
            f"in place of --scores: results of `batch`, each of a generator, in the column {GENERATOR}",
            metavar="[NAME=]FILE",
            several=True,
            positional=True,
            nargs="+",
        ),
    ] = ()

    @property
    def place(self) -> str:
        return ", ".join(map(str, generator_paths(self.results).values())) or str(self.table)

    def read(self) -> Table:
        if self.table and not self.results:
            return read_table(self.table)
        if self.table or not self.results:
            given = named("table", "FILE")
            raise InputError(f"name the scores: {given}, or the results of each generator, NAME=FILE …")
        return joined(generator_paths(self.results))


@dataclass(frozen=True, kw_only=True)
class OfMetrics(OfScores):
    """Settings of a figure of a metric; of several it is computed on the same rows."""

    metrics: Annotated[
        Sequence[str],
        MetricNames("the column of its scores; several, also with commas, are compared on the same rows"),
    ]
    lower_is_better: Annotated[bool, Setting(LOWER_HELP)] = False

    @property
    def metric(self) -> str:
        """The column of the only metric."""
        return self.metrics[0]

    def columns(self, argument: str) -> str:
        return ", ".join(self.metrics) if argument == "metric" else super().columns(argument)


def scale_of(text: str) -> Scale:
    """Return the scale that *text* names, such as 1:5."""
    return Scale(*ends_of_scale(text))


@dataclass(frozen=True, kw_only=True)
class OnScale:
    """Settings of ratings that have a scale."""

    scale: Annotated[
        Scale | None, Setting("ratings outside are counted and left out", metavar="A:B", parse=scale_of)
    ] = None


def label(column: str) -> str:
    """Return a column's name as Matplotlib shows it: a dollar sign would begin a formula."""
    return column.replace("$", r"\$")


def rows(table: Table) -> list[str | None]:
    """Return a name for each row, in order, for figures whose unit it is."""
    return [f"{place:09}" for place in range(len(table.records))]


Evaluated = Callable[[Any, Table], FigureOutcome]


def sliced(evaluated: Evaluated, settings: FigureSettings, table: Table) -> FigureOutcome:
    """Return the figures of all rows, and by the values of the column `--by`."""
    whole = of_metrics(evaluated, settings, table)
    if isinstance(settings, Drawings) and settings.bootstrap:
        whole.content["seed"] = settings.seed
    whole.content.update(few(len(table.records), whole))
    if settings.by is None:
        return whole
    tags = table.each(settings.by, values)
    by: dict[str, Any] = {}
    for value in sorted({value for each in tags for value in each}):
        records = [row for row, each in zip(table.records, tags, strict=True) if value in each]
        try:
            part = of_metrics(evaluated, settings, replace(table, records=records))
        except InputError as exc:  # all ratings may be the same, for example
            part = FigureOutcome({"error": str(exc)}, whole.draw)
        by[value] = {"rows": len(records)} | part.content | few(len(records), part)
    more = {"by": by, "untagged": sum(not each for each in tags)}
    return FigureOutcome({"rows": len(table.records)} | whole.content | more, whole.draw)


def of_metrics(evaluated: Evaluated, settings: FigureSettings, table: Table) -> FigureOutcome:
    """Return the figures of a metric, or of several on the rows that have all, and their differences."""
    if not isinstance(settings, OfMetrics):
        return evaluated(settings, table)
    metrics = list(dict.fromkeys(settings.metrics))
    if len(metrics) == 1:
        return evaluated(replace(settings, metrics=metrics), table)
    columns = [table.numbers(metric) for metric in metrics]
    records = [
        row
        for row, cells in zip(table.records, zip(*columns, strict=True), strict=True)
        if not any(cell != cell for cell in cells)
    ]
    whole = {row.number for row in records}
    others = [row for row in table.records if row.number not in whole]
    found = {
        metric: evaluated(
            replace(settings, metrics=[metric]),
            replace(table, records=records, incomplete=others, turned=False),
        )
        for metric in metrics
    }
    apart = differences({name: (each.content, each.drawn) for name, each in found.items() if each.drawn})
    content: dict[str, Any] = {"metrics": {name: each.content for name, each in found.items()}}
    content |= {"differences": list(map(asdict, apart)), "incomplete": len(table.records) - len(records)}
    return FigureOutcome(content, found[metrics[0]].draw, size=found[metrics[0]].size)


def few(rows: int, found: FigureOutcome) -> dict[str, str]:
    """Return the caution about figures of few things, by default those of the *rows* that are in them."""
    content = found.content
    figures = next(iter(content.get("metrics", {"": content}).values()))
    used = int(rows - content.get("incomplete", 0) - figures.get("dropped", 0))
    return caution(*(found.size or (used, "row")))
