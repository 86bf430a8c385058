"""
GenEval's checks of the objects in an image (Ghosh et al. 2023, as in the released code).

The reasons have the released code's words, since people have scripts that parse them.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, get_args

from service.metrics.objects.detections import DetectedObject, Objects
from service.metrics.objects.positions import MARGIN, PositionRule, relations
from service.metrics.objects.tasks import Colour, Include, Task


class Verdict(NamedTuple):
    """The result of all checks, and a line for each clause that fails."""

    correct: bool
    reason: str


def verdict(task: Task, objects: Objects, rule: PositionRule, margin: float = MARGIN) -> Verdict:
    """
    Check that every clause holds.

    Colours and positions are those of the objects with the highest confidence, as many as the clause counts.
    Their colours must be set.
    """
    matched: list[Sequence[DetectedObject]] = []  # by clause; empty if it fails
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
    return Verdict(not reasons, "\n".join(reasons))


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
