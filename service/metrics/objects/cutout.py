"""A cut-out of one object: the rest of its box is grey, or as an option chooses."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import PIL.Image
import PIL.ImageColor

from models.core.outcomes import Detection, size_of
from models.images.formats.contract import Header
from models.images.image import Image, lossless

BACKGROUND = "#999"  # GenEval's
GREY = PIL.ImageColor.getrgb(BACKGROUND)
ORIGINAL = "original"  # a background: the picture itself
BYTES_PER_PIXEL = 4


class Cutout(Image):
    """
    The part of *picture* within an object's box, grey outside the object's mask.

    The digest is that of the picture's digest, the box and the mask, so nothing has to be decoded for it.
    Raises `ValueError` for an object without a mask.

    Args:
        crop: to the box; otherwise the whole picture.
        background: outside the mask, as in `#999`, or `original` for the picture's own.
    """

    def __init__(
        self, picture: Image, found: Detection, *, crop: bool = True, background: str = BACKGROUND
    ) -> None:
        if found.mask is None:
            raise ValueError("an object without a mask cannot be cut out")
        fill = None if background == ORIGINAL else PIL.ImageColor.getrgb(background)
        content = f"cutout of {picture.digest} {found.box} {found.mask!r}"
        if not crop or fill != GREY:
            content += f" {crop} {fill}"
        super().__init__(b"", hashlib.sha256(content.encode()).hexdigest())
        self._picture, self._found, self._crop, self._fill = picture, found, crop, fill
        height, width = size_of(found.box) if crop else picture.size[::-1]
        self.header = Header("cutout", width, height, width * height * BYTES_PER_PIXEL)

    @property
    def encoded(self) -> bytes:
        """A file of its pixels."""
        return lossless(self.rgb)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the pixels of the picture, too, see `Image.in_use`."""
        with self._picture.in_use(), super().in_use():
            yield

    def _decoded(self) -> PIL.Image.Image:
        left, top, right, bottom = map(round, self._found.box)
        picture = self._picture.rgb
        part = picture.crop((left, top, right, bottom)) if self._crop else picture
        if self._fill is None:
            return part
        mask = PIL.Image.fromarray(np.asarray(self._found.pixels, bool))
        if not self._crop:
            inside, mask = mask, PIL.Image.new("1", picture.size)
            mask.paste(inside, (left, top))
        return PIL.Image.composite(part, PIL.Image.new("RGB", part.size, self._fill), mask)
