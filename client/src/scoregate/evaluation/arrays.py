"""Columns as arrays: names as numbers, values without the noise of floats, and the scale of ratings."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from scoregate.errors import ColumnError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Names = Sequence[str]

# Decimals of up to nine places, and fractions with a denominator up to 20, such as shares of questions.
SCALES = (*(10**places for places in range(10)), lcm(*range(1, 21)))
LARGEST_INTEGER = 2.0**33
NOISE = 1e-14  # share of a value by which a few additions and a division round it


def coded(names: Names) -> tuple[list[str], Codes]:
    """Return the distinct *names* in order, and the index of each row's name."""
    distinct, codes = np.unique(np.asarray(names, dtype=object), return_inverse=True)
    return [str(name) for name in distinct], codes.astype(np.intp)


def average_ranks(values: npt.ArrayLike) -> Floats:
    """Return ranks from 1, the mean of a tie's, as scipy's `rankdata`, whose import takes a second."""
    return ranks_of_places(np.unique(values, return_inverse=True)[1])


def ranks_of_places(places: Codes) -> Floats:
    """Return the ranks as `average_ranks`, from the place of each value among the distinct ones."""
    copies = np.bincount(places)
    ranks: Floats = (copies.cumsum() - (copies - 1) / 2)[places]
    return ranks


def exact(values: Floats) -> tuple[Floats, int]:
    """
    Return the values as whole numbers and the scale that makes them so, so that equal differences are equal.

    0.3 - 0.2 and 0.2 - 0.1 differ as floats, and 3 - 2 and 2 - 1 do not.  Values that are neither short
    decimals nor simple fractions come back as they are, with scale 1.
    """
    for scale in SCALES:
        scaled = values * scale
        whole = np.rint(scaled)
        if np.abs(whole).max(initial=0) > LARGEST_INTEGER:
            break
        if np.all(np.abs(scaled - whole) <= NOISE * np.abs(scaled)):
            return whole + 0.0, scale  # + 0.0: no negative zero
    return values, 1


def floats(values: Any, argument: str, *, varied: bool = False) -> Floats:
    """
    Return *values* as an array of finite numbers without the noise of floats: 0.1 + 0.2 becomes 0.3.

    Values that `exact` makes equal are equal.  This is the one rule of what is tied.  Every column of every
    figure goes through it, so that ranks, pairs and areas count the same values as equal.

    Raises:
        ColumnError: the column is empty, a value is not finite, or all are equal and must be *varied*.
    """
    found = np.asarray(values, dtype=np.float64)
    if not found.size:
        raise ColumnError(argument, "no row has a value")
    if not np.isfinite(found).all():
        raise ColumnError(argument, "a value is no finite number")
    whole, scale = exact(found)
    found = whole / scale
    if varied and found.min() == found.max():
        raise ColumnError(
            argument, f"all {len(found)} values are {found[0]:g}" if found[1:].size else "one value"
        )
    return found


@dataclass(frozen=True)
class Scale:
    """From *low* to *high*; ratings outside, such as a code for "unsure", are ignored."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g}"


def inside(ratings: Floats, scale: Scale | None, argument: str) -> npt.NDArray[np.bool_]:
    """Return the mask of ratings on the scale.  Raises `ColumnError` if all are outside."""
    found = np.ones(len(ratings), bool)
    if scale:
        found = (ratings >= scale.low) & (ratings <= scale.high)
    if not found.any():
        raise ColumnError(argument, f"no value lies in {scale}" if scale else "no row has a value")
    return found
