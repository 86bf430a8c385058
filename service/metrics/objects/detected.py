"""Detected objects, and the filter of those that count."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from models.core.outcomes.detections import Box, Detection
from service.metrics.objects.tasks import Tag

THRESHOLD = 0.3  # an object counts if its confidence is above that
COUNTING_THRESHOLD = 0.9  # in tasks of counting
MAX_OBJECTS = 16  # of a class, those with the highest confidence


@dataclass(frozen=True, slots=True)
class DetectedObject:
    """
    One detected object.

    Attributes:
        name: its class.
        score: the detector's confidence, 0 to 1.
        box: left, top, right and bottom in pixels.
        colour: None if no check depends on it.
        seen: the detection with its mask.
    """

    name: str
    score: float
    box: Box
    colour: str | None = None
    seen: Detection | None = None


Objects = Mapping[str, Sequence[DetectedObject]]
"""Objects by class, the highest confidence first."""


def threshold_of(tag: Tag) -> float:
    """Return the score that an object must exceed."""
    return COUNTING_THRESHOLD if tag == "counting" else THRESHOLD


def by_class(found: Iterable[DetectedObject], tag: Tag) -> Objects:
    """
    Return the objects that count in a task, by class.

    The released code's other filter, for overlapping boxes, is off by default, and left out here.  Of two
    equal scores the later object comes first, as in the released code.
    """
    groups = defaultdict[str, list[DetectedObject]](list)
    for each in found:
        if each.score > threshold_of(tag):
            groups[each.name].append(each)
    return {
        name: sorted(reversed(group), key=attrgetter("score"), reverse=True)[:MAX_OBJECTS]
        for name, group in groups.items()
    }
