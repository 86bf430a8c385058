"""
Pillow's resize of RGB pictures, equal to the bit, in about a quarter of its time.

Pillow weighs 8-bit pixels by whole numbers, first along one axis, then along the other, each rounded to 8
bits.  Whole numbers have no order of summation, so any loops give its pixels (ADR 0028).
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import PIL.Image

from models.images.kernels import BITS, CHANNELS, ROWS, blend, blend_columns

Colour = tuple[int, ...]
BLACK = (0, 0, 0)
STRIP = 1 << 20  # bytes that are copied from a picture at a time: they stay in the cache of a core
KEPT = 64  # pairs of lengths whose taps are cached


@dataclass(frozen=True, slots=True)
class Taps:
    """
    How pixels along one axis are weighed.

    Attributes:
        spans: (n, 3), see `blend`.
        weights: (n, taps), see `blend`.
    """

    spans: np.ndarray
    weights: np.ndarray

    @property
    def needed(self) -> tuple[int, int]:
        """The first pixel that is weighed, and the one behind the last."""
        used = self.spans[self.spans[:, 1] > 0]
        return (int(used[:, 0].min()), int((used[:, 0] + used[:, 1]).max())) if len(used) else (0, 1)

    def part(self, start: int, stop: int) -> "Taps":
        """Return the taps of the results *start* to *stop*."""
        return Taps(self.spans[start:stop], self.weights[start:stop])

    def moved(self, by: int) -> "Taps":
        """Return taps for pixels without the first *by* ones, none of which is needed."""
        return Taps(self.spans - np.array([by, 0, 0], np.int32), self.weights)

    def inside(self, start: int, length: int) -> "Taps":
        """Return taps for the *length* pixels from *start*; the others have one value, the fill."""
        first, count, _ = self.spans.T
        ends = np.clip([first, first + count], start, start + length) - start
        kept = ends[1] - ends[0]
        skipped = np.where(kept > 0, ends[0] + start - first, 0)
        taps = np.arange(self.weights.shape[1])
        places = np.minimum(taps + skipped[:, None], taps[-1])
        weights = np.where(taps < kept[:, None], np.take_along_axis(self.weights, places, 1), 0)
        outside = self.weights.sum(1) - weights.sum(1)
        spans = np.stack([np.where(kept > 0, ends[0], 0), kept, outside], 1)
        return Taps(spans.astype(np.int32), weights.astype(np.int32))


@lru_cache(KEPT)
def taps_of(length: int, wanted: int, bilinear: bool = False) -> Taps:
    """Return the taps that resize *length* pixels to *wanted*: bicubic with a = -0.5, or bilinear."""
    scale = length / wanted
    stretch = max(scale, 1.0)
    support = (1.0 if bilinear else 2.0) * stretch
    centres = (np.arange(wanted) + 0.5) * scale
    first = np.maximum((centres - support + 0.5).astype(int), 0)
    count = np.minimum((centres + support + 0.5).astype(int), length) - first
    taps = np.arange(count.max())
    distances = np.abs((taps + first[:, None] - centres[:, None] + 0.5) * (1.0 / stretch))
    shares = np.where(taps < count[:, None], (linear if bilinear else cubic)(distances), 0.0)
    shares /= shares.cumsum(1)[:, -1:]  # one after the other, as Pillow adds them
    weights = np.trunc(shares * (1 << BITS) + np.copysign(0.5, shares)).astype(np.int32)
    return Taps(np.stack([first, count, np.zeros_like(first)], 1).astype(np.int32), weights)


def cubic(x: np.ndarray) -> np.ndarray:
    """Return the bicubic weights at the distances *x*, in Pillow's order of steps."""
    a = -0.5
    near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    weights: np.ndarray = np.where(x < 1, near, np.where(x < 2, far, 0.0))
    return weights


def linear(x: np.ndarray) -> np.ndarray:
    """Return the bilinear weights at the distances *x*."""
    weights: np.ndarray = np.where(x < 1, 1 - x, 0.0)
    return weights


def rows_go_first(size: tuple[int, int], wanted: tuple[int, int]) -> bool:
    """Return True where Pillow 13 resizes rows before columns: rows shrink by more than twice as many."""
    fewer_columns, fewer_rows = (old - new for old, new in zip(size, wanted, strict=True))
    return fewer_rows > max(0, 2 * fewer_columns)


def resample(
    rgb: PIL.Image.Image, across: Taps, down: Taps, colour: Colour = BLACK, rows_first: bool = False
) -> np.ndarray:
    """
    Weigh the pixels of *rgb* along both axes.

    Args:
        across, down: of columns and of rows.
        colour: of pixels outside the picture.
        rows_first: rows are weighed before columns; only without pixels outside.

    Returns:
        (3, rows, columns), uint8.
    """
    (left, right), (top, bottom) = across.needed, down.needed
    across, down = across.moved(left), down.moved(top)
    box = left, top, right, bottom
    if rows_first:
        planes = columns_of(fewer_rows(rgb, box, down), across, colour)
    else:
        step = lines_of_a_strip(right - left)
        strips = [(left, y, right, min(bottom, y + step)) for y in range(top, bottom, step)]
        tall = [columns_of(words(rgb, strip), across, colour) for strip in strips]
        lines = (tall[0] if len(tall) == 1 else np.concatenate(tall)).reshape(bottom - top, -1)
        fill = np.repeat(np.array(colour, np.int32), lines.shape[1] // CHANNELS)
        blended = np.empty((len(down.spans), lines.shape[1]), np.uint8)
        blend(lines, down.spans, down.weights, fill, blended)
        planes = blended.reshape(len(blended), CHANNELS, -1)
    return np.ascontiguousarray(planes[:, :, : len(across.spans)].transpose(1, 0, 2))


def columns_of(pixels: np.ndarray, across: Taps, colour: Colour) -> np.ndarray:
    """Weigh the columns of *pixels* (H, W) in words; (H, 3, columns), padded to a multiple of four."""
    planes = np.empty((len(pixels), CHANNELS, -(-len(across.spans) // 4)), np.uint32)
    fill = np.repeat(np.array(colour, np.int32), ROWS)
    blend_columns(pixels, across.spans, across.weights, fill, planes)
    return planes.view(np.uint8)


def fewer_rows(rgb: PIL.Image.Image, box: tuple[int, int, int, int], down: Taps) -> np.ndarray:
    """Weigh the rows of a box of *rgb*; (rows, W) in words."""
    left, top, right, bottom = box
    parts, step = [], lines_of_a_strip(bottom - top)
    for x in range(left, right, step):
        lines = words(rgb, (x, top, min(right, x + step), bottom)).view(np.uint8)
        blended = np.empty((len(down.spans), lines.shape[1]), np.uint8)
        blend(lines, down.spans, down.weights, np.zeros(lines.shape[1], np.int32), blended)
        parts.append(blended.view(np.uint32))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, 1)


def lines_of_a_strip(length: int) -> int:
    """Return how many rows, or columns, of *length* pixels are copied at a time: whole blocks of `ROWS`."""
    return max(1, STRIP // (4 * length * ROWS)) * ROWS


def words(rgb: PIL.Image.Image, box: tuple[int, int, int, int]) -> np.ndarray:
    """Copy a box of *rgb*: (H, W) words of red, green, blue and a byte that is not used."""
    part = rgb if box == (0, 0, *rgb.size) else rgb.crop(box)
    return np.frombuffer(part.tobytes("raw", "RGBX"), np.uint32).reshape(part.height, part.width)
