"""The colours of objects by CLIP, from cut-outs on grey (Ghosh et al. 2023, appendix C.3)."""

from collections.abc import Callable, Iterable
from typing import get_args

import numpy as np

from models.core.calls import ImageCall, TextCall
from models.core.outcomes import Detection
from models.images.image import Image
from service.metrics.common.model_calls import ModelCalls
from service.metrics.objects.cutout import Cutout
from service.metrics.objects.detections import DetectedObject
from service.metrics.objects.tasks import Colour

COLOURS: tuple[Colour, ...] = get_args(Colour)
TEMPLATES = (
    "a photo of a {colour} {name}",
    "a photo of a {colour}-colored {name}",
    "a photo of a {colour} object",
)


def texts_of(name: str) -> list[str]:
    """Return the texts for objects of a class: colour by colour, in each of the templates."""
    return [template.format(colour=colour, name=name) for colour in COLOURS for template in TEMPLATES]


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
    colours = vectors[: len(texts)].reshape(len(names), len(COLOURS), len(TEMPLATES), -1).mean(2)
    colours /= np.linalg.norm(colours, axis=-1, keepdims=True)
    return {
        each: COLOURS[int(np.argmax(colours[names.index(each.name)] @ vector))]
        for each, vector in zip(objects, vectors[len(texts) :], strict=True)
    }
