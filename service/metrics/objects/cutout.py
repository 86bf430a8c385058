"""A cut-out of one object: the rest of its box is grey."""

import hashlib

import numpy as np
import PIL.Image

from models.core.outcomes.detections import Detection, size_of
from models.images.formats.contract import Header
from models.images.image import Image, lossless

GREY = (0x99, 0x99, 0x99)  # GenEval's background of objects
BYTES_PER_PIXEL = 4


class Cutout(Image):
    """
    The part of *picture* within an object's box, grey outside the object's mask.

    The digest is that of the picture's digest, the box and the mask, so nothing has to be decoded for it.
    Raises `ValueError` for an object without a mask.
    """

    def __init__(self, picture: Image, found: Detection) -> None:
        if found.mask is None:
            raise ValueError("an object without a mask cannot be cut out")
        content = f"cutout of {picture.digest} {found.box} {found.mask!r}"
        super().__init__(b"", hashlib.sha256(content.encode()).hexdigest())
        self._picture, self._found = picture, found
        height, width = size_of(found.box)
        self.header = Header("cutout", width, height, width * height * BYTES_PER_PIXEL)

    @property
    def encoded(self) -> bytes:
        """A file of its pixels."""
        return lossless(self.rgb)

    def _decoded(self) -> PIL.Image.Image:
        left, top, right, bottom = map(round, self._found.box)
        part = self._picture.rgb.crop((left, top, right, bottom))
        mask = PIL.Image.fromarray(np.asarray(self._found.pixels, bool))
        return PIL.Image.composite(part, PIL.Image.new("RGB", part.size, GREY), mask)
