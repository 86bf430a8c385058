"""A picture as the input of a detector."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import PIL.Image
import torch

from models.core.calls import DetectCall
from models.core.contract import ModelError

MAX_SIDE = 2048  # larger pictures are scaled down first; detectors see 1,333 pixels at most
MAX_ASPECT = 16  # longer side over shorter; padding would take gigabytes
COST_SIDE = 32  # side of the squares that the cost counts


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """
    A preprocessed picture.

    Attributes:
        pixels: input of the network (3, height, width), float32, or not yet normalised, uint8.
        size: width and height of the picture itself.
        threshold: lowest score of an object, exclusive.
        labels: objects to find; empty for a model with a fixed set.
    """

    pixels: torch.Tensor
    size: tuple[int, int]
    threshold: float
    labels: tuple[str, ...] = ()

    @property
    def pieces(self) -> int:
        """The number of 32 x 32 squares in the network's input."""
        height, width = self.pixels.shape[-2:]
        return ceil(height / COST_SIDE) * ceil(width / COST_SIDE)


def prepared_image(call: DetectCall, preprocess: Callable[[PIL.Image.Image], torch.Tensor]) -> PreparedImage:
    """Run the call's picture through *preprocess*.  Raises `ModelError` for a strip."""
    rgb = call.image.rgb
    if max(rgb.size) > MAX_ASPECT * min(rgb.size):
        raise ModelError(f"the image is more than {MAX_ASPECT} times as long as it is wide")
    return PreparedImage(preprocess(smaller(rgb)), rgb.size, call.threshold, call.labels)


def smaller(rgb: PIL.Image.Image) -> PIL.Image.Image:
    """Scale *rgb* down to sides of `MAX_SIDE` at most."""
    scale = MAX_SIDE / max(rgb.size)
    if scale >= 1:
        return rgb
    width, height = (max(1, round(side * scale)) for side in rgb.size)
    return rgb.resize((width, height), PIL.Image.Resampling.BICUBIC)


def by_shape(images: Sequence[PreparedImage]) -> Iterator[tuple[list[int], list[PreparedImage]]]:
    """Group pictures by the shape of their tensors, with their indices."""
    groups = defaultdict[torch.Size, list[int]](list)
    for place, image in enumerate(images):
        groups[image.pixels.shape].append(place)
    for places in groups.values():
        yield places, [images[place] for place in places]
