"""
A picture as the detector's input, and its coordinates.

The detector enlarges any page until its shorter side has 736 pixels.  A strip would take gigabytes then, so
strips are padded, and large pictures scaled down.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
import PIL.Image

MAX_SIDE = 1280  # longest side of a page; smaller pictures are not scaled
MIN_SIDE = 32
MAX_ASPECT = 3  # longer side over shorter; black fills the rest
DETECTED_SIDE = 736  # what the detector enlarges the shorter side to
PIECE = 32  # side of the squares that the cost counts


@dataclass(frozen=True, slots=True)
class Page:
    """
    The input of the detector.

    Attributes:
        pixels: uint8 (height, width, 3), in the order blue, green, red.
        place: left, top, right and bottom of the picture on the page.
        size: width and height of the picture itself.
    """

    pixels: np.ndarray
    place: tuple[int, int, int, int]
    size: tuple[int, int]

    @property
    def cost(self) -> int:
        """The number of 32x32 squares in the detector's input."""
        height, width = self.pixels.shape[:2]
        larger = max(1.0, DETECTED_SIDE / min(height, width))
        pieces: int = ceil(height * larger / PIECE) * ceil(width * larger / PIECE)
        return pieces

    def in_picture(self, corners: np.ndarray) -> tuple[tuple[float, float], ...]:
        """Convert corners (4, 2) on the page to pixels of the picture, clipped."""
        place, size = np.array(self.place, float), np.array(self.size, float)
        scale = size / (place[2:] - place[:2])
        found = np.clip((corners - place[:2]) * scale, 0, size)
        return tuple((float(x), float(y)) for x, y in found)


def page_of(rgb: PIL.Image.Image) -> Page:
    """Scale *rgb* down to a page's size, and centre it on a page that is no strip."""
    scale = min(1.0, MAX_SIDE / max(rgb.size))
    width, height = (max(1, round(side * scale)) for side in rgb.size)
    picture = rgb.resize((width, height), PIL.Image.Resampling.BICUBIC) if scale < 1 else rgb
    least = max(MIN_SIDE, ceil(max(width, height) / MAX_ASPECT))
    page = PIL.Image.new("RGB", (max(width, least), max(height, least)))
    left, top = (page.width - width) // 2, (page.height - height) // 2
    page.paste(picture, (left, top))
    pixels = np.ascontiguousarray(np.asarray(page)[:, :, ::-1])
    return Page(pixels, (left, top, left + width, top + height), rgb.size)
