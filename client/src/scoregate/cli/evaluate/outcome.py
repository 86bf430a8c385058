"""The outcome of a figure of `scoregate evaluate`, with intervals and slices, and what figures share."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from scoregate.cli.arguments import count, scale
from scoregate.evaluation import BadInput, Scale, Table
from scoregate.evaluation.bootstrap import Drawn, Sample, differences, drawn, interval
from scoregate.evaluation.tables import text
from scoregate.records import json_cell

Cells = Sequence[str | None]

DRAWINGS = 1000  # of a bootstrap
FEW = 30  # rows, below which a figure says little
CLUSTERS = ("prompt", "item", "text_id")  # columns whose values are drawn where no other one is named


@dataclass(frozen=True)
class Outcome:
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
) -> Outcome:
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
        content |= {"interval": interval(drawn)} if drawn.values else {}
        if cluster != "row":
            size = drawn.sample.units, cluster if cluster in ("item", "prompt") else "cluster"
    return Outcome(content | more | ({"lower_is_better": True} if table.turned else {}), draw, drawn, size)


def add_lower(parser: argparse.ArgumentParser) -> None:
    """Declare the direction of the scores."""
    what = "of these scores; a result of `scoregate batch` says it by itself"
    parser.add_argument("--lower-is-better", action="store_true", help=what)


def add_table(parser: argparse.ArgumentParser, flag: str = "--scores") -> None:
    """Declare the file."""
    what = ".csv, .jsonl or .parquet, also .gz, or a result of `scoregate batch`"
    parser.add_argument(flag, dest="table", type=Path, required=True, metavar="FILE", help=what)


def add_columns(parser: argparse.ArgumentParser, columns: Mapping[str, str]) -> None:
    """Declare required columns: a description by name."""
    for name, what in columns.items():
        several = {"action": "append"} if name == "metric" else {}
        more = "; several are compared on the same rows" if several else ""
        parser.add_argument(f"--{name}", required=True, metavar="COLUMN", help=what + more, **several)


def add_scale(parser: argparse.ArgumentParser) -> None:
    """Declare the ratings' scale."""
    parser.add_argument("--scale", type=scale, metavar="A:B", help="ratings outside are counted and left out")


def add_ratings(parser: argparse.ArgumentParser) -> None:
    """Declare a table of ratings with one row for each."""
    add_table(parser, "--ratings")
    columns = {"unit": "what was rated", "rater": "who rated it", "rating": "the rating, a number"}
    add_columns(parser, columns)
    add_scale(parser)


def ratings_of(arguments: argparse.Namespace, table: Table, *more: list[str | None]) -> list[Any]:
    """Return the columns unit, rater, rating and *more* of its complete rows."""
    texts = table.texts(arguments.unit), table.texts(arguments.rater)
    return table.complete(*texts, table.numbers(arguments.rating), *more)


def scale_of(arguments: argparse.Namespace) -> Scale | None:
    return Scale(*arguments.scale) if arguments.scale else None


def label(column: str) -> str:
    """Return a column's name as Matplotlib shows it: a dollar sign would begin a formula."""
    return column.replace("$", r"\$")


class Cluster(NamedTuple):
    """What is drawn: the name of its column, or of the unit of a figure, and its value in each row."""

    name: str
    cells: Cells


def add_bootstrap(parser: argparse.ArgumentParser, times: int = DRAWINGS) -> None:
    """Declare intervals, and what is drawn."""
    add_drawings(parser, times)
    what = "draw its values, each with all of its rows (default prompt, item or text_id, where one is shared)"
    parser.add_argument("--cluster", metavar="COLUMN", help=what)


def add_drawings(parser: argparse.ArgumentParser, times: int = DRAWINGS) -> None:
    """Declare intervals alone."""
    add = parser.add_argument
    what = "intervals and p-values from N drawings, 0 for none (default %(default)s)"
    add("--bootstrap", type=count, default=times, metavar="N", help=what)
    add("--seed", type=count, default=0, help="of the drawings (default 0)")
    parser.set_defaults(cluster=None)


def cluster_of(arguments: argparse.Namespace, table: Table, name: str, units: Cells) -> Cluster:
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
    if arguments.cluster:
        cells = table.texts(arguments.cluster)
        if divided := [*divided_by(units, cells)]:
            raise BadInput(
                f"{table.path}, column {arguments.cluster}: {name} {divided[0]} has several of its values"
            )
        return Cluster(arguments.cluster, cells)
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


def drawings(arguments: argparse.Namespace, sample: Sample) -> Drawn | None:
    """Return the bootstrap of a sample; None without intervals."""
    return drawn(sample, arguments.bootstrap, arguments.seed) if arguments.bootstrap else None


def interval_of(arguments: argparse.Namespace, sample: Sample) -> dict[str, Any]:
    """Return the intervals of a sample's figures, below their key; empty without them."""
    drawn = drawings(arguments, sample)
    if not (drawn and drawn.values):
        return {}
    return {"interval": interval(drawn)} | ({"clusters": sample.units} if arguments.cluster else {})


def compared(
    arguments: argparse.Namespace,
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
    drawn = {name: (of.whole, each) for name, of in of_common.items() if (each := drawings(arguments, of))}
    apart = [asdict(each) for each in differences(drawn)]
    return content | ({"differences": apart} if apart else {})


def caution(rows: int, what: str = "row") -> dict[str, str]:
    """Return the caution that figures are of few *rows*, if so."""
    return {"caution": f"{rows} {what}{'s' * (rows != 1)}, fewer than {FEW}"} if rows < FEW else {}


Evaluated = Callable[[argparse.Namespace, "Table"], Outcome]


def sliced(evaluated: Evaluated, arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the figures of all rows, and by the values of the column `--by`."""
    whole = of_metrics(evaluated, arguments, table)
    if getattr(arguments, "bootstrap", 0):
        whole.content["seed"] = arguments.seed
    whole.content.update(few(len(table.records), whole))
    if arguments.by is None:
        return whole
    tags = table.each(arguments.by, values)
    by: dict[str, Any] = {}
    for value in sorted({value for each in tags for value in each}):
        records = [row for row, each in zip(table.records, tags, strict=True) if value in each]
        try:
            part = of_metrics(evaluated, arguments, replace(table, records=records))
        except BadInput as exc:  # for example, all ratings are the same
            part = Outcome({"error": str(exc)}, whole.draw)
        by[value] = {"rows": len(records)} | part.content | few(len(records), part)
    more = {"by": by, "untagged": sum(not each for each in tags)}
    return Outcome({"rows": len(table.records)} | whole.content | more, whole.draw)


def of_metrics(evaluated: Evaluated, arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the figures of a metric, or of several on the rows that have all, and their differences."""
    metrics = getattr(arguments, "metric", None)
    if metrics is None:
        return evaluated(arguments, table)
    metrics = list(dict.fromkeys(metrics))
    if len(metrics) == 1:
        return evaluated(with_metric(arguments, metrics[0]), table)
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
            with_metric(arguments, metric), replace(table, records=records, incomplete=others, turned=False)
        )
        for metric in metrics
    }
    apart = differences({name: (each.content, each.drawn) for name, each in found.items() if each.drawn})
    content: dict[str, Any] = {"metrics": {name: each.content for name, each in found.items()}}
    content |= {"differences": list(map(asdict, apart)), "incomplete": len(table.records) - len(records)}
    return Outcome(content, found[metrics[0]].draw, size=found[metrics[0]].size)


def with_metric(arguments: argparse.Namespace, metric: str) -> argparse.Namespace:
    return argparse.Namespace(**vars(arguments) | {"metric": metric})


def few(rows: int, found: Outcome) -> dict[str, str]:
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
