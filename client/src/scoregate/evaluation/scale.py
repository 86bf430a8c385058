"""The scale of ratings."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from scoregate.evaluation.arrays import Floats
from scoregate.evaluation.errors import BadColumn


@dataclass(frozen=True)
class Scale:
    """From *low* to *high*; ratings outside, such as a code for "unsure", are ignored."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g}"


def inside(ratings: Floats, scale: Scale | None, role: str) -> npt.NDArray[np.bool_]:
    """Return the mask of ratings on the scale.  Raises `BadColumn` if all are outside."""
    found = np.ones(len(ratings), bool)
    if scale:
        found = (ratings >= scale.low) & (ratings <= scale.high)
    if not found.any():
        raise BadColumn(role, f"no value lies in {scale}" if scale else "no row has a value")
    return found
