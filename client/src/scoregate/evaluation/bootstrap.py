"""Intervals of figures by a percentile bootstrap: settings, drawings, differences, and cautions."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from scoregate.errors import ColumnError, InputError
from scoregate.evaluation.arrays import Codes, Floats
from scoregate.settings import Column, Setting, count

if TYPE_CHECKING:
    from scoregate.evaluation.tables import Table

BAND = (2.5, 97.5)  # percentiles
ROUNDING_TOLERANCE = 1e-12  # drawings of a figure that differ by less differ by the rounding of sums
Z2 = 1.959963984540054**2  # square of the normal distribution's two-sided 95 % quantile
DRAWINGS = 1000  # drawings of a bootstrap: of rows, items or prompts
MIN_ROWS = 30  # rows, below which a figure says little
CLUSTERS = ("prompt", "item", "text_id")  # columns whose values are drawn where no other one is named

Figures = Mapping[str, float]
Cells = Sequence[str | None]


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


class Sample(NamedTuple):
    """
    Units that are drawn with replacement.

    Attributes:
        units: their number.
        figures: computes the figures of a drawing from the number of times that each unit is in it.
        shares: the figures from 0 to 1 that count right answers, each with the number of units that it is of.
    """

    units: int
    figures: Callable[[Codes], Figures]
    shares: Mapping[str, int] = MappingProxyType({})

    @property
    def whole(self) -> Figures:
        """The figures with each unit once."""
        return self.figures(np.ones(self.units, np.intp))


class Drawn(NamedTuple):
    """The drawings of a sample: each figure's values, NaN where it is not defined; none for one unit."""

    sample: Sample
    values: Mapping[str, Floats]


@dataclass(frozen=True)
class Difference:
    """
    Figure of *a* minus that of *b* on the same units: 95 % interval and two-sided p-value.

    The ends are None if all drawings have the same difference, as `ends` says.
    """

    a: str
    b: str
    figure: str
    difference: float
    interval: tuple[float, float] | tuple[None, None]
    p: float


def means(values: Mapping[str, tuple[Codes, Any]], units: int, *, shares: Collection[str] = ()) -> Sample:
    """
    Return the sample whose figures are means of *values*, which have the unit of each value before them.

    A figure whose values are all of one unit is left out: it would be the same in all drawings.

    Args:
        shares: the figures whose values are from 0 to 1, such as right answers.
    """
    sizes = {name: len(np.unique(of)) for name, (of, _) in values.items()}
    several = {name: each for name, each in values.items() if sizes[name] > 1}
    sums = {name: np.bincount(of, each, minlength=units) for name, (of, each) in several.items()}
    counts = {name: np.bincount(of, minlength=units) for name, (of, _) in several.items()}

    def figures(times: Codes) -> Figures:
        drawn = {name: int(each @ times) for name, each in counts.items()}
        return {name: float(sums[name] @ times) / count for name, count in drawn.items() if count}

    return Sample(units, figures, {name: sizes[name] for name in several if name in shares})


def together(*samples: Sample) -> Sample:
    """Return the sample with the figures of all *samples*, which are of the same units."""

    def figures(times: Codes) -> Figures:
        return {name: value for each in samples for name, value in each.figures(times).items()}

    shares = {name: units for each in samples for name, units in each.shares.items()}
    return Sample(samples[0].units, figures, shares)


def drawn(sample: Sample, times: int, seed: int) -> Drawn:
    """
    Return *times* drawings of a sample; none if it has one unit.

    With the same seed, as many units give the same drawings, so that two metrics are compared in pairs.
    """
    random = np.random.default_rng(seed)
    found: list[Figures] = []
    for _ in range(times if sample.units > 1 else 0):
        chosen = random.integers(sample.units, size=sample.units)
        try:
            found.append(sample.figures(np.bincount(chosen, minlength=sample.units)))
        except ColumnError:  # all rows drawn may have the same rating, for example
            found.append({})
    names = dict.fromkeys(name for figures in found for name in figures)
    values = {name: np.array([figures.get(name, np.nan) for figures in found]) for name in names}
    return Drawn(sample, values)


def interval(found: Drawn) -> dict[str, tuple[float, float]]:
    """Return the interval of each figure that has one, as `ends`."""
    every = {name: ends(each, found.sample.shares.get(name)) for name, each in found.values.items()}
    return {name: each for name, each in every.items() if each is not None}


def ends(values: Any, units: int | None = None, lowest: float = 0.0) -> tuple[float, float] | None:
    """
    Return the ends of the middle 95 % of the drawings.

    A figure that is the same in all of them, such as the mean of equal grades, is not certain for that.  A
    share has Wilson's interval (1927), which at 0 and 1 is z²/(n + z²) wide.  Another figure has none, since
    no drawing shows how far it varies.

    Args:
        units: of a share, *n*; None for another figure.
        lowest: the least value of the share.
    """
    low, high = band(values)
    if high - low > ROUNDING_TOLERANCE * max(abs(low), abs(high)):
        return low, high
    if units is None:
        return None
    width = Z2 / (units + Z2)
    return max(low - width, lowest), min(high + width, 1.0)


def band(values: Any) -> tuple[float, float]:
    """Return the ends of the middle 95 % of values; NaN is none."""
    values = np.asarray(values)
    low, high = map(float, np.percentile(values[~np.isnan(values)], BAND))
    return low, high


def differences(found: Mapping[str, tuple[Figures, Drawn]]) -> list[Difference]:
    """
    Return the differences of each two metrics, from the figures of each and its drawings.

    P counts the drawings on the other side of 0, plus one.  It is never below that of a sign test in which
    all units are on one side.
    """
    rows = []
    for (a, (of_a, drawn_a)), (b, (of_b, drawn_b)) in combinations(found.items(), 2):
        for name in sorted(drawn_a.values.keys() & drawn_b.values.keys()):
            apart = drawn_a.values[name] - drawn_b.values[name]
            apart = apart[~np.isnan(apart)]
            if len(apart):
                # Equal figures of two metrics are apart by the rounding of their sums, no difference.
                apart[np.abs(apart) <= ROUNDING_TOLERANCE * np.nanmax(np.abs(drawn_a.values[name]))] = 0.0
                shares = drawn_a.sample.shares.get(name)
                beyond = min((apart <= 0).sum(), (apart >= 0).sum()) + 1
                least = 2.0 ** (1 - (shares or drawn_a.sample.units))
                p = min(1.0, max(least, float(2 * beyond / (len(apart) + 1))))
                interval = ends(apart, shares, lowest=-1.0) or (None, None)
                rows.append(Difference(a, b, name, of_a[name] - of_b[name], interval, p))
    return rows


class Cluster(NamedTuple):
    """What is drawn: the name of its column, or of the unit of a figure, and its value in each row."""

    name: str
    cells: Cells


def cluster_of(settings: Drawings, table: "Table", name: str, units: Cells) -> Cluster:
    """
    Return what is drawn in a bootstrap, since pictures of one prompt are not independent of each other.

    This is the column `--cluster`, else the first of `CLUSTERS` with a value that several units share, else
    the units.

    Args:
        name: of the units.
        units: the unit of each row, which is never divided; None in a row that is in no figure.

    Raises:
        InputError: there is no such column, or a unit has two of its values.
    """
    if settings.cluster:
        cells = table.texts(settings.cluster)
        if divided := [*divided_by(units, cells)]:
            raise InputError(
                f"{table.place}, column {settings.cluster}: {name} {divided[0]} has several of its values"
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


def uncertainty(settings: Drawings, sample: Sample, rows: int, what: str) -> dict[str, Any]:
    """
    Return the intervals of a sample's figures, if there are any, and the caution that they are of few *rows*.

    *what* is the word for a row.
    """
    made, content = drawings(settings, sample), dict[str, Any]()
    if made and (found := interval(made)):
        content = {"interval": found} | ({"clusters": sample.units} if settings.cluster else {})
    return content | caution(rows, what)


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
    made = {name: (of.whole, each) for name, of in of_common.items() if (each := drawings(settings, of))}
    apart = [asdict(each) for each in differences(made)]
    return content | ({"differences": apart} if apart else {})


def caution(rows: int, what: str = "row") -> dict[str, str]:
    """Return the caution that figures are of few *rows*, if so."""
    return {"caution": f"{rows} {what}{'s' * (rows != 1)}, fewer than {MIN_ROWS}"} if rows < MIN_ROWS else {}
