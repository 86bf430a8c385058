"""Intervals of figures by a bootstrap: their settings, what is drawn, differences, and cautions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, NamedTuple

from scoregate.evaluation.bootstrap import Drawn, Sample, differences, drawn, interval
from scoregate.evaluation.tables import Table
from scoregate.records import BadInput
from scoregate.settings import Column, Setting, count

Cells = Sequence[str | None]

DRAWINGS = 1000  # drawings of a bootstrap
MIN_ROWS = 30  # rows, below which a figure says little
CLUSTERS = ("prompt", "item", "text_id")  # columns whose values are drawn where no other one is named


@dataclass(frozen=True, kw_only=True)
class Drawings:
    """Settings of intervals."""

    bootstrap: Annotated[
        int,
        Setting(
            "intervals and p-values from N drawings, 0 for none (default %(default)s)",
            metavar="N",
            parse=count,
        ),
    ] = DRAWINGS
    seed: Annotated[int, Setting("of the drawings (default 0)", parse=count)] = 0
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True)
class Bootstrap(Drawings):
    """Settings of intervals, and of what is drawn."""

    cluster: Annotated[
        str | None,
        Column(
            "draw its values, each with all of its rows (default prompt, item or text_id,"
            " where one is shared)"
        ),
    ] = None


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
