"""The outcome of a figure of `scoregate evaluate`, with intervals and slices, and what figures share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.bootstrap import Drawn, Sample, differences, drawn, interval
from scoregate.evaluation.tables import GENERATOR, Table, joined, read_table, text
from scoregate.records import BadInput, json_cell
from scoregate.settings import count, generator_paths, in_column, metrics_named, setting
from scoregate.settings import scale as ends_of_scale

Cells = Sequence[str | None]

TABLE = ".csv, .jsonl or .parquet, also .gz, or a result of `scoregate batch`, also a folder of them"
LOWER = "of these scores; a result of `scoregate batch` says it by itself"
DRAWINGS = 1000  # drawings of a bootstrap
MIN_ROWS = 30  # rows, below which a figure says little
CLUSTERS = ("prompt", "item", "text_id")  # columns whose values are drawn where no other one is named


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

    table: Path = setting(TABLE, "--scores", metavar="FILE", parse=Path)
    by: str | None = in_column(
        "the same figures for each value of it; a list counts in each of its values", default=None
    )

    def columns(self, role: str) -> str:
        """Return the columns that have a *role*, for an error about them."""
        found = getattr(self, role, None) or role
        return ", ".join(found) if isinstance(found, tuple) else found

    @property
    def place(self) -> str:
        """The files, for errors."""
        return str(self.table)

    def read(self) -> Table:
        """Return the table.  Raises `BadInput`, `OSError`."""
        return read_table(self.table)


@dataclass(frozen=True, kw_only=True)
class OfScores(FigureSettings):
    """Settings of a figure of scores, which may be results of several generators."""

    table: Path | None = setting(TABLE, "--scores", default=None, metavar="FILE", parse=Path)  # type: ignore[assignment]
    results: Sequence[str] = setting(
        f"in place of --scores: results of `batch`, each of a generator, in the column {GENERATOR}",
        default=(),
        metavar="[NAME=]FILE",
        several=True,
        positional=True,
        nargs="+",
    )

    @property
    def place(self) -> str:
        return ", ".join(map(str, generator_paths(self.results).values())) or str(self.table)

    def read(self) -> Table:
        if self.table and not self.results:
            return read_table(self.table)
        if self.table or not self.results:
            raise BadInput("name the scores: --scores FILE, or the results of each generator, NAME=FILE …")
        return joined(generator_paths(self.results))


@dataclass(frozen=True, kw_only=True)
class OfMetrics(OfScores):
    """Settings of a figure of a metric; of several it is computed on the same rows."""

    metrics: Sequence[str] = metrics_named(
        "the column of its scores; several, also with commas, are compared on the same rows"
    )
    lower_is_better: bool = setting(LOWER, default=False)

    @property
    def metric(self) -> str:
        """The column of the only metric."""
        return self.metrics[0]

    def columns(self, role: str) -> str:
        return ", ".join(self.metrics) if role == "metric" else super().columns(role)


def scale(text: str) -> Scale:
    """Return the scale that *text* names, such as 1:5."""
    return Scale(*ends_of_scale(text))


@dataclass(frozen=True, kw_only=True)
class OnScale:
    """Settings of ratings that have a scale."""

    scale: Scale | None = setting(
        "ratings outside are counted and left out", default=None, metavar="A:B", parse=scale
    )


@dataclass(frozen=True, kw_only=True)
class Drawings:
    """Settings of intervals."""

    bootstrap: int = setting(
        "intervals and p-values from N drawings, 0 for none (default %(default)s)",
        default=DRAWINGS,
        metavar="N",
        parse=count,
    )
    seed: int = setting("of the drawings (default 0)", default=0, parse=count)
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class Bootstrap(Drawings):
    """Settings of intervals, and of what is drawn."""

    cluster: str | None = in_column(
        "draw its values, each with all of its rows (default prompt, item or text_id, where one is shared)",
        default=None,
    )


def label(column: str) -> str:
    """Return a column's name as Matplotlib shows it: a dollar sign would begin a formula."""
    return column.replace("$", r"\$")


class Cluster(NamedTuple):
    """What is drawn: the name of its column, or of the unit of a figure, and its value in each row."""

    name: str
    cells: Cells


def cluster_of(settings: Drawings, table: Table, name: str, units: Cells) -> Cluster:
    """
    Return what is drawn in a bootstrap, since pictures of one prompt are not independent of each other.

    This is the column `--cluster`, else the first of `CLUSTERS` with a value that several units share, else
    the units.

    Args:
        name: of the units.
        units: the unit of each row, which is never divided; None in a row that is in no figure.

    Raises:
        BadInput: there is no such column, or a unit has two of its values.
    """
    if settings.cluster:
        cells = table.texts(settings.cluster)
        if divided := [*divided_by(units, cells)]:
            raise BadInput(
                f"{table.path}, column {settings.cluster}: {name} {divided[0]} has several of its values"
            )
        return Cluster(settings.cluster, cells)
    for column in CLUSTERS:
        if not table.has(column):
            continue
        cells = table.texts(column)
        own = [unit if cell is None else cell for unit, cell in zip(units, cells, strict=True)]
        used = {cell for unit, cell in zip(units, own, strict=True) if unit is not None}
        if 1 < len(used) < len({*units} - {None}) and not any(divided_by(units, own)):
            return Cluster(column, own)
    return Cluster(name, units)


def divided_by(units: Cells, cells: Cells) -> Iterator[str]:
    """Yield the units whose rows have several of *cells*."""
    of: dict[str, str | None] = {}
    for unit, cell in zip(units, cells, strict=True):
        if unit is not None and of.setdefault(unit, cell) != cell:
            yield unit


def rows(table: Table) -> list[str | None]:
    """Return a name for each row, in order, for figures whose unit it is."""
    return [f"{place:09}" for place in range(len(table.records))]


def drawings(settings: Drawings, sample: Sample) -> Drawn | None:
    """Return the bootstrap of a sample; None without intervals."""
    return drawn(sample, settings.bootstrap, settings.seed) if settings.bootstrap else None


def interval_of(settings: Drawings, sample: Sample) -> dict[str, Any]:
    """Return the intervals of a sample's figures, below their key; empty without them."""
    drawn = drawings(settings, sample)
    if not (drawn and (ends := interval(drawn))):
        return {}
    return {"interval": ends} | ({"clusters": sample.units} if settings.cluster else {})


def compared(
    settings: Drawings,
    found: Mapping[str, Mapping[Any, Any]],
    sample_of: Callable[[Mapping[Any, Any]], Sample],
    what: str,
) -> dict[str, Any]:
    """
    Return the differences of each two of *found*, and how many entries they are computed on.

    These are the entries that all of them have.  *what* is the word for one.
    """
    if len(found) < 2:
        return {}
    common = set.intersection(*map(set, found.values()))
    content = {"compared": len(common), **caution(len(common), what)}
    if not common:
        return content
    of_common = {name: sample_of({key: each[key] for key in common}) for name, each in found.items()}
    drawn = {name: (of.whole, each) for name, of in of_common.items() if (each := drawings(settings, of))}
    apart = [asdict(each) for each in differences(drawn)]
    return content | ({"differences": apart} if apart else {})


def caution(rows: int, what: str = "row") -> dict[str, str]:
    """Return the caution that figures are of few *rows*, if so."""
    return {"caution": f"{rows} {what}{'s' * (rows != 1)}, fewer than {MIN_ROWS}"} if rows < MIN_ROWS else {}


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
        except BadInput as exc:  # all ratings may be the same, for example
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


def values(cell: Any) -> list[str]:
    """Return the values of a cell: those of a list, also of one written as JSON; none if it is empty."""
    cell = json_cell(cell)
    cells = cell if isinstance(cell, list | tuple) else [cell]
    return list(dict.fromkeys(found for each in cells if (found := text(each)) is not None))
