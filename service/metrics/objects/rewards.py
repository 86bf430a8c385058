"""
GenEval as a reward: partial credit for each clause, and an exact number of objects.

The rules are those of the reward server of flow_grpo (yifan123/reward-server, 92ac29f); deepgen_rl's has the
same.
"""

from collections.abc import Sequence
from typing import NamedTuple

from service.metrics.objects.checks import positions
from service.metrics.objects.detections import DetectedObject, Objects
from service.metrics.objects.positions import MARGIN, PositionRule
from service.metrics.objects.tasks import Include, Task


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


def reward(task: Task, objects: Objects, rule: PositionRule, margin: float = MARGIN) -> ObjectReward:
    """Return the reward of an image with these *objects*, whose colours are set."""
    matched: list[Sequence[DetectedObject]] = []  # by clause; empty if it fails
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
