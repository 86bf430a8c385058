"""The objects that were found in a picture, and which of them count."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from models.core.outcomes.detections import Box, Detection
from service.metrics.objects.tasks import Tag

THRESHOLD = 0.3  # an object counts if the detector is surer than that
COUNTING_THRESHOLD = 0.9  # in tasks of counting
MAX_OBJECTS = 16  # of a class, the surest ones


@dataclass(frozen=True, slots=True)
class Found:
    """
    One object.

    Attributes:
        name: its class.
        score: how sure the detector is, 0 to 1.
        box: left, top, right and bottom in pixels.
        colour: None where it was not looked at.
        seen: what the detector says of it, with its mask.
    """

    name: str
    score: float
    box: Box
    colour: str | None = None
    seen: Detection | None = None


Objects = Mapping[str, Sequence[Found]]
"""By class, the surest first."""


def threshold_of(tag: Tag) -> float:
    """What the score of an object must be larger than."""
    return COUNTING_THRESHOLD if tag == "counting" else THRESHOLD


def by_class(found: Iterable[Found], tag: Tag) -> Objects:
    """
    Those that count in a task, by class.

    The released code's other filter, for overlapping boxes, is off by default, and is not here.  Of two that
    score the same, the later one goes first, as in the released code.
    """
    groups = defaultdict[str, list[Found]](list)
    for each in found:
        if each.score > threshold_of(tag):
            groups[each.name].append(each)
    return {
        name: sorted(reversed(group), key=attrgetter("score"), reverse=True)[:MAX_OBJECTS]
        for name, group in groups.items()
    }
