"""Percentile bootstrap: how far figures vary over units that are drawn again, and how they differ."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from scoregate.evaluation.alpha import band
from scoregate.evaluation.arrays import Codes, Floats
from scoregate.evaluation.errors import BadColumn

Figures = Mapping[str, float]
Drawn = dict[str, Floats]  # a figure's values, one for each drawing; NaN if it is not defined there


@dataclass(frozen=True)
class Difference:
    """Figure of *a* minus that of *b* on the same rows: 95 % interval and two-sided p-value."""

    a: str
    b: str
    figure: str
    difference: float
    interval: tuple[float, float]
    p: float


def drawn(
    figures: Callable[[Codes], Figures],
    units: Codes,
    times: int,
    seed: int,
    counted: Callable[[Codes], Figures] | None = None,
) -> Drawn:
    """
    Return the figures of rows whose units are drawn with replacement; none if there is one unit.

    The same units and seed give the same rows, so that two metrics are compared in pairs.

    Args:
        figures: computes the figures of rows, given by their indices.
        units: the unit of each row, from 0; a unit is drawn with all of its rows.
        counted: computes more figures from the number of times that each unit is drawn.
    """
    order = np.argsort(units, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(units))[:-1])
    random = np.random.default_rng(seed)
    found: list[Figures] = []
    for _ in range(times if len(rows) > 1 else 0):
        chosen = random.integers(len(rows), size=len(rows))
        try:
            of_rows = figures(np.concatenate([rows[unit] for unit in chosen]))
            more = counted(np.bincount(chosen, minlength=len(rows))) if counted else {}
            found.append({**of_rows, **more})
        except BadColumn:  # for example, all rows drawn have the same rating
            found.append({})
    names = dict.fromkeys(name for each in found for name in each)
    return {name: np.array([each.get(name, np.nan) for each in found]) for name in names}


def interval(values: Drawn) -> dict[str, tuple[float, float]]:
    """Return the middle 95 % of each figure."""
    return {name: band(list(each[~np.isnan(each)])) for name, each in values.items()}


def differences(
    a: str, b: str, figures: tuple[Mapping[str, float], Mapping[str, float]], of: tuple[Drawn, Drawn]
) -> list[Difference]:
    """Return the differences of two metrics.  P counts the drawings on the other side of 0, plus one."""
    found = []
    for name in of[0].keys() & of[1].keys():
        apart = of[0][name] - of[1][name]
        apart = apart[~np.isnan(apart)]
        if len(apart):
            beyond = min((apart <= 0).sum(), (apart >= 0).sum()) + 1
            p = min(1.0, float(2 * beyond / (len(apart) + 1)))
            found.append(Difference(a, b, name, figures[0][name] - figures[1][name], band(list(apart)), p))
    return sorted(found, key=lambda each: each.figure)
