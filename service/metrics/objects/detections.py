"""Detected objects, and the filter of those that count."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from models.core.outcomes import Box, Detection
from service.metrics.objects.tasks import Tag


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Which objects count; the defaults are those of the released code.

    Attributes:
        threshold: an object counts if its confidence is above that.
        counting_threshold: in tasks of counting.
        max_objects: of a class, those with the highest confidence.
        max_overlap: of two boxes of a class, as intersection over union; from that on, only the object with
            the higher confidence counts.  1: both do.
    """

    threshold: float = 0.3
    counting_threshold: float = 0.9
    max_objects: int = 16
    max_overlap: float = 1.0

    def of(self, tag: Tag) -> float:
        """Return the score that an object must exceed."""
        return self.counting_threshold if tag == "counting" else self.threshold

    @property
    def least(self) -> float:
        """The lower one of both thresholds, so that all tasks have one call of the detector."""
        return min(self.threshold, self.counting_threshold)


RELEASED = Limits()


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


def by_class(found: Iterable[DetectedObject], tag: Tag, limits: Limits = RELEASED) -> Objects:
    """
    Return the objects that count in a task, by class.

    Of two equal scores the later object comes first, as in the released code.
    """
    groups = defaultdict[str, list[DetectedObject]](list)
    for each in found:
        if each.score > limits.of(tag):
            groups[each.name].append(each)
    return {
        name: apart(
            sorted(reversed(group), key=attrgetter("score"), reverse=True)[: limits.max_objects],
            limits.max_overlap,
        )
        for name, group in groups.items()
    }


def apart(group: Sequence[DetectedObject], max_overlap: float) -> list[DetectedObject]:
    """Return the objects whose overlap with those before them is below *max_overlap*, if that is below 1."""
    kept: list[DetectedObject] = []
    for each in group:
        if max_overlap == 1 or all(overlap(each.box, other.box) < max_overlap for other in kept):
            kept.append(each)
    return kept


def overlap(a: Box, b: Box) -> float:
    """Return the intersection of two boxes over their union; the last pixel of a box is inside."""
    both = area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
    either = area(a) + area(b) - both
    return both / either if either else 0.0


def area(box: Box) -> float:
    """Return the area of a box in pixels."""
    return max(box[2] - box[0] + 1, 0.0) * max(box[3] - box[1] + 1, 0.0)
