"""
GenEval's checks of the objects in an image (Ghosh et al. 2023, as in the released code), and its rewards.

The reasons have the released code's words, since people have scripts that parse them.  The rewards are those
of the reward server of flow_grpo (yifan123/reward-server, 92ac29f); deepgen_rl's has the same.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import copysign, hypot
from typing import Literal, NamedTuple, get_args

from models.core.outcomes import Box
from service.metrics.objects.detections import DetectedObject, Objects
from service.metrics.objects.tasks import Colour, Include, SpatialRelation, Task

PositionRule = Literal["released", "paper"]

POSITION_MARGIN = 0.1  # the default of the least distance of the centers, relative to both objects' sizes
MIN_OFFSET_PIXELS = 1e-3  # pixels beyond the margin; less is no offset
MIN_DIRECTION_SHARE = 0.5  # least share of the distance in one direction


def relations(a: Box, b: Box, rule: PositionRule, margin: float = POSITION_MARGIN) -> list[SpatialRelation]:
    """
    Return the relations of *a* to *b*: none, one or several.

    The paper's rule: the centers differ in a direction by more than *margin* of both sizes together.  (Its
    formulas for "above" and "below" differ only by a sign; both were meant to mirror left and right.)  The
    released code divides the offset beyond the margin by the distance of the centers, and requires more than
    a half: an object that is mostly below is not "left of" as well.
    """
    beyond = [beyond_margin(a, b, axis, margin) for axis in (0, 1)]
    if rule == "released":
        if all(abs(offset) < MIN_OFFSET_PIXELS for offset in beyond):
            return []
        distance = hypot(*(middle(a, axis) - middle(b, axis) for axis in (0, 1)))
        beyond = [offset / distance for offset in beyond]
    least = MIN_DIRECTION_SHARE if rule == "released" else 0.0
    x, y = beyond
    holds: dict[SpatialRelation, bool] = {
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


class TaskCheck(NamedTuple):
    """The result of all checks, and a line for each clause that fails."""

    correct: bool
    reason: str


def verdict(task: Task, objects: Objects, rule: PositionRule, margin: float = POSITION_MARGIN) -> TaskCheck:
    """
    Check that every clause holds.

    Colours and positions are those of the objects with the highest confidence, as many as the clause counts.
    Their colours must be set.
    """
    matched: list[Sequence[DetectedObject]] = []  # one entry a clause; empty if the clause fails
    reasons: list[str] = []
    for clause in task.include:
        found = surest(clause, objects)
        if reason := failure(clause, found, matched, rule, margin):
            reasons.append(reason)
        matched.append([] if reason else found)
    for unwanted in task.exclude:
        count = len(objects.get(unwanted.name, ()))
        if count >= unwanted.count:
            reasons.append(f"expected {unwanted.name}<{unwanted.count}, found {count}")
    return TaskCheck(not reasons, "\n".join(reasons))


def surest(clause: Include, objects: Objects) -> Sequence[DetectedObject]:
    """Return the objects of a clause, those with the highest confidence."""
    return objects.get(clause.name, ())[: clause.count]


def failure(
    clause: Include,
    found: Sequence[DetectedObject],
    matched: Sequence[Sequence[DetectedObject]],
    rule: PositionRule,
    margin: float,
) -> str:
    """Return why a clause fails, or an empty string."""
    if len(found) < clause.count:
        return f"expected {clause.name}>={clause.count}, found {len(found)}"
    if clause.color:
        colours = Counter(each.colour for each in found)
        if colours[clause.color] < clause.count:
            others = ", ".join(f"{colours[name]} {name}" for name in get_args(Colour) if colours[name])
            return (
                f"expected {clause.color} {clause.name}>={clause.count}, "
                f"found {colours[clause.color]} {clause.color}; and {others}"
            )
    if clause.position:
        relation, number = clause.position
        if not matched[number]:
            return f"no target for {clause.name} to be {relation}"
        for said in positions(found, matched[number], rule, margin):
            if relation not in said:
                return f"expected {clause.name} {relation} target, found {' and '.join(said)} target"
    return ""


def positions(
    found: Sequence[DetectedObject], targets: Sequence[DetectedObject], rule: PositionRule, margin: float
) -> Iterator[Sequence[str]]:
    """Yield the relations of each object to each target."""
    for each in found:
        for target in targets:
            yield relations(each.box, target.box, rule, margin)


def coloured(task: Task, objects: Objects) -> list[DetectedObject]:
    """Return the objects whose colours matter: of clauses that name a colour and have enough objects."""
    return [
        each
        for clause in task.include
        if clause.color and len(surest(clause, objects)) >= clause.count
        for each in surest(clause, objects)
    ]


class ObjectReward(NamedTuple):
    """
    The reward of an image.

    Attributes:
        strict: true if the number of objects is exact, with their colours and positions.  Excluded objects
            are not checked.
        value: the mean reward of all counts, colours and positions; at most 1, and below 0 for far too many
            objects.
    """

    strict: bool
    value: float


def reward(task: Task, objects: Objects, rule: PositionRule, margin: float = POSITION_MARGIN) -> ObjectReward:
    """Return the reward of an image with these *objects*, whose colours are set."""
    matched: list[Sequence[DetectedObject]] = []  # one entry a clause; empty if the clause fails
    parts: list[float] = []
    for clause in task.include:
        found = objects.get(clause.name, ())
        given, holds = of_clause(clause, found, matched, rule, margin)
        parts += given
        matched.append(found if holds else [])
    return ObjectReward(all(matched), sum(parts) / len(parts))


def of_clause(
    clause: Include,
    found: Sequence[DetectedObject],
    matched: Sequence[Sequence[DetectedObject]],
    rule: PositionRule,
    margin: float,
) -> tuple[list[float], bool]:
    """Return the rewards of a clause's parts, and True if it holds."""
    parts, holds = [share(clause.count, len(found))], len(found) == clause.count
    if not holds:
        return [*parts, *([0.0] if clause.color or clause.position else [])], False
    if clause.color:
        coloured = sum(each.colour == clause.color for each in found)
        parts.append(share(clause.count, coloured))
        holds = coloured == clause.count
    if clause.position and holds:
        relation, number = clause.position
        if not matched[number]:
            return [*parts, 0.0], False
        holds = all(relation in said for said in positions(found, matched[number], rule, margin))
        parts += [1.0] if holds else [0.0, 1.0]  # the 1 is also in the original if a position is wrong
    return parts, holds


def share(asked: int, found: int) -> float:
    """Return `1 - |asked - found| / asked`."""
    return 1 - abs(asked - found) / asked
