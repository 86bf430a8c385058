"""Detected objects: those that count, their cut-outs on grey, and their colours by CLIP."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import get_args

import numpy as np
import PIL.Image
import PIL.ImageColor

from models.core.calls import ImageCall, TextCall
from models.core.outcomes import Box, Detection, size_of
from models.images.formats.contract import Header
from models.images.image import Image, lossless
from service.metrics.common.model_calls import ModelCalls
from service.metrics.objects.tasks import Colour, Tag


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


RELEASED_LIMITS = Limits()


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


def by_class(found: Iterable[DetectedObject], tag: Tag, limits: Limits = RELEASED_LIMITS) -> Objects:
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


BACKGROUND = "#999"  # GenEval has this grey
GREY = PIL.ImageColor.getrgb(BACKGROUND)
ORIGINAL = "original"  # a background: the picture itself
BYTES_PER_PIXEL = 4


class Cutout(Image):
    """
    The part of *image* within an object's box, grey outside the object's mask.

    The digest is that of the picture's digest, the box and the mask, so nothing has to be decoded for it.
    Raises `ValueError` for an object without a mask.

    Args:
        crop: to the box; otherwise the whole picture.
        background: outside the mask, as in `#999`, or `original` for the picture's own.
    """

    def __init__(
        self, image: Image, found: Detection, *, crop: bool = True, background: str = BACKGROUND
    ) -> None:
        if found.mask is None:
            raise ValueError("an object without a mask cannot be cut out")
        fill = None if background == ORIGINAL else PIL.ImageColor.getrgb(background)
        content = f"cutout of {image.digest} {found.box} {found.mask!r}"
        if not crop or fill != GREY:
            content += f" {crop} {fill}"
        super().__init__(b"", hashlib.sha256(content.encode()).hexdigest())
        self._image, self._found, self._crop, self._fill = image, found, crop, fill
        height, width = size_of(found.box) if crop else image.size[::-1]
        self.header = Header("cutout", width, height, width * height * BYTES_PER_PIXEL)

    @property
    def encoded(self) -> bytes:
        """A file of its pixels."""
        return lossless(self.rgb)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the pixels of the picture, too, see `Image.in_use`."""
        with self._image.in_use(), super().in_use():
            yield

    def _decoded(self) -> PIL.Image.Image:
        left, top, right, bottom = map(round, self._found.box)
        image = self._image.rgb
        part = image.crop((left, top, right, bottom)) if self._crop else image
        if self._fill is None:
            return part
        mask = PIL.Image.fromarray(np.asarray(self._found.pixels, bool))
        if not self._crop:
            inside, mask = mask, PIL.Image.new("1", image.size)
            mask.paste(inside, (left, top))
        return PIL.Image.composite(part, PIL.Image.new("RGB", part.size, self._fill), mask)


COLOURS: tuple[Colour, ...] = get_args(Colour)
COLOUR_TEMPLATES = (
    "a photo of a {colour} {name}",
    "a photo of a {colour}-colored {name}",
    "a photo of a {colour} object",
)


def texts_of(name: str) -> list[str]:
    """Return the texts for objects of a class: colour by colour, in each of the templates."""
    return [template.format(colour=colour, name=name) for colour in COLOURS for template in COLOUR_TEMPLATES]


async def colours_of(
    image: Image,
    found: Iterable[DetectedObject],
    models: ModelCalls,
    cut: Callable[[Image, Detection], Image] = Cutout,
) -> dict[DetectedObject, Colour]:
    """
    Return the likeliest colour of each object.

    A colour's vector is the normalized mean of its templates' unit vectors.  The released code
    computes with CLIP ViT-L/14 of OpenAI in half precision on a GPU.

    Args:
        cut: makes the picture of an object.
    """
    objects = [*dict.fromkeys(found)]
    if not objects:
        return {}
    names = [*dict.fromkeys(each.name for each in objects)]
    texts = [TextCall(text) for name in names for text in texts_of(name)]
    cutouts = [ImageCall(cut(image, each.seen)) for each in objects if each.seen]
    vectors = np.stack([each.vector for each in await models.ask("clip", [*texts, *cutouts])]).astype(float)
    colours = vectors[: len(texts)].reshape(len(names), len(COLOURS), len(COLOUR_TEMPLATES), -1).mean(2)
    colours /= np.linalg.norm(colours, axis=-1, keepdims=True)
    return {
        each: COLOURS[int(np.argmax(colours[names.index(each.name)] @ vector))]
        for each, vector in zip(objects, vectors[len(texts) :], strict=True)
    }
