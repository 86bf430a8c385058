"""Relative positions of objects (Ghosh et al. 2023, appendix C.3, and the released code)."""

from math import copysign, hypot
from typing import Literal

from models.core.outcomes import Box
from service.metrics.objects.tasks import Relation

PositionRule = Literal["released", "paper"]

MARGIN = 0.1  # the default of the least distance of the centers, relative to both objects' sizes
LEAST = 1e-3  # pixels beyond the margin; less is no offset
DIRECTION = 0.5  # least share of the distance in one direction


def relations(a: Box, b: Box, rule: PositionRule, margin: float = MARGIN) -> list[Relation]:
    """
    Return the relations of *a* to *b*: none, one or several.

    The paper's rule: the centers differ in a direction by more than *margin* of both sizes together.  (Its
    formulas for "above" and "below" differ only by a sign; both were meant to mirror left and right.)  The
    released code divides the offset beyond the margin by the distance of the centers, and requires more than
    a half: an object that is mostly below is not "left of" as well.
    """
    beyond = [beyond_margin(a, b, axis, margin) for axis in (0, 1)]
    if rule == "released":
        if all(abs(offset) < LEAST for offset in beyond):
            return []
        distance = hypot(*(middle(a, axis) - middle(b, axis) for axis in (0, 1)))
        beyond = [offset / distance for offset in beyond]
    least = DIRECTION if rule == "released" else 0.0
    x, y = beyond
    holds: dict[Relation, bool] = {
        "left of": x < -least,
        "right of": x > least,
        "above": y < -least,
        "below": y > least,
    }
    return [relation for relation, holding in holds.items() if holding]


def beyond_margin(a: Box, b: Box, axis: int, margin: float) -> float:
    """Return the offset of *a*'s center from *b*'s along an axis, less the margin; 0 within it."""
    offset = middle(a, axis) - middle(b, axis)
    return copysign(max(abs(offset) - margin * (length(a, axis) + length(b, axis)), 0.0), offset)


def middle(box: Box, axis: int) -> float:
    """Return the center of a box along an axis; 0 is x."""
    return (box[axis] + box[axis + 2]) / 2


def length(box: Box, axis: int) -> float:
    """Return the size of a box along an axis."""
    return abs(box[axis + 2] - box[axis])
