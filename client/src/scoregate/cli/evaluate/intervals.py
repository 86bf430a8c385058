"""Intervals of figures, differences of metrics or generators, and the caution about few rows."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from scoregate.cli.evaluate.outcome import count

if TYPE_CHECKING:
    from scoregate.evaluation import Table
    from scoregate.evaluation.bootstrap import Drawn, Sample

    Cells = Sequence[str | None]

DRAWINGS = 1000  # of a bootstrap
FEW = 30  # rows, below which a figure says little
CLUSTERS = ("prompt", "item", "text_id")  # columns whose values are drawn where no other one is named


class Cluster(NamedTuple):
    """What is drawn: the name of its column, or of the unit of a figure, and its value in each row."""

    name: str
    cells: "Cells"


def add_bootstrap(parser: argparse.ArgumentParser, times: int = DRAWINGS) -> None:
    """Declare intervals."""
    add = parser.add_argument
    what = "intervals and p-values from N drawings, 0 for none (default %(default)s)"
    add("--bootstrap", type=count, default=times, metavar="N", help=what)
    add("--seed", type=count, default=0, help="of the drawings (default 0)")
    what = "draw its values, each with all of its rows (default prompt, item or text_id, where one is shared)"
    add("--cluster", metavar="COLUMN", help=what)


def cluster_of(arguments: argparse.Namespace, table: "Table", name: str, units: "Cells") -> Cluster:
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
    from scoregate.evaluation import BadInput
    from scoregate.evaluation.tables import held

    if arguments.cluster:
        cells = table.texts(arguments.cluster)
        if divided := [*divided_by(units, cells)]:
            raise BadInput(
                f"{table.path}, column {arguments.cluster}: {name} {divided[0]} has several of its values"
            )
        return Cluster(arguments.cluster, cells)
    for column in CLUSTERS:
        if not any(held(record.values, column) for record in table.records):
            continue
        cells = table.texts(column)
        own = [unit if cell is None else cell for unit, cell in zip(units, cells, strict=True)]
        used = {cell for unit, cell in zip(units, own, strict=True) if unit is not None}
        if 1 < len(used) < len({*units} - {None}) and not any(divided_by(units, own)):
            return Cluster(column, own)
    return Cluster(name, units)


def divided_by(units: "Cells", cells: "Cells") -> "Iterator[str]":
    """Yield the units whose rows have several of *cells*."""
    of: dict[str, str | None] = {}
    for unit, cell in zip(units, cells, strict=True):
        if unit is not None and of.setdefault(unit, cell) != cell:
            yield unit


def rows(table: "Table") -> list[str | None]:
    """Return a name for each row, in order, for figures whose unit it is."""
    return [f"{place:09}" for place in range(len(table.records))]


def drawings(arguments: argparse.Namespace, sample: "Sample") -> "Drawn | None":
    """Return the bootstrap of a sample; None without intervals."""
    from scoregate.evaluation.bootstrap import drawn

    return drawn(sample, arguments.bootstrap, arguments.seed) if arguments.bootstrap else None


def interval_of(arguments: argparse.Namespace, sample: "Sample") -> dict[str, Any]:
    """Return the intervals of a sample's figures, below their key; empty without them."""
    from scoregate.evaluation.bootstrap import interval

    drawn = drawings(arguments, sample)
    if not (drawn and drawn.values):
        return {}
    return {"interval": interval(drawn)} | ({"clusters": sample.units} if arguments.cluster else {})


def compared(
    arguments: argparse.Namespace,
    found: Mapping[str, Mapping[Any, Any]],
    sample_of: "Callable[[Mapping[Any, Any]], Sample]",
    what: str,
) -> dict[str, Any]:
    """
    Return the differences of each two of *found*, and how many entries they are computed on.

    These are the entries that all of them have.  *what* is the word for one.
    """
    if len(found) < 2:
        return {}
    from scoregate.evaluation.bootstrap import differences

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
