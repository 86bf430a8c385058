"""Where one object is from another (Ghosh et al. 2023, appendix C.3, and the released code)."""

from math import copysign, hypot
from typing import Literal

from models.core.outcomes.detections import Box
from service.metrics.objects.tasks import Relation

PositionRule = Literal["released", "paper"]

MARGIN = 0.1  # of both objects' sizes, that their middles must be apart
LEAST = 1e-3  # pixels beyond the margin that are an offset at all
DIRECTION = 0.5  # share of the whole distance that must go in one direction


def relations(a: Box, b: Box, rule: PositionRule) -> list[Relation]:
    """
    Where *a* is from *b*; several may be true, and none.

    The paper's rule: the middles differ in a direction by more than a tenth of both sizes together.  (It
    prints the same formula for "above" as for "below" but for a sign; both were meant to mirror left and
    right.)  The released code divides what is beyond the margin by the distance of the middles, and asks for
    more than a half: an object that is mostly below is not "left of" as well.
    """
    beyond = [beyond_margin(a, b, axis) for axis in (0, 1)]
    if rule == "released":
        if all(abs(offset) < LEAST for offset in beyond):
            return []
        distance = hypot(*(middle(a, axis) - middle(b, axis) for axis in (0, 1)))
        beyond = [offset / distance for offset in beyond]
    least = DIRECTION if rule == "released" else 0.0
    x, y = beyond
    said: dict[Relation, bool] = {
        "left of": x < -least,
        "right of": x > least,
        "above": y < -least,
        "below": y > least,
    }
    return [relation for relation, holds in said.items() if holds]


def beyond_margin(a: Box, b: Box, axis: int) -> float:
    """How far *a*'s middle is from *b*'s along an axis, less the margin; 0 within it."""
    offset = middle(a, axis) - middle(b, axis)
    return copysign(max(abs(offset) - MARGIN * (length(a, axis) + length(b, axis)), 0.0), offset)


def middle(box: Box, axis: int) -> float:
    """Of a box along an axis, 0 being x."""
    return (box[axis] + box[axis + 2]) / 2


def length(box: Box, axis: int) -> float:
    """Of a box along an axis."""
    return abs(box[axis + 2] - box[axis])
