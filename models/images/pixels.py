"""Preprocessing of the CLIP image processor (8-bit bicubic, centre crop, normalise)."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import PIL.Image
import torch

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
STRIP = 256  # rows padded at a time
MAX_ASPECT = 64  # longer side over shorter; the rest is far outside the centre crop


@dataclass(frozen=True, slots=True)
class Pixels:
    """
    An RGB picture to a float32 tensor (3, size, size).

    Attributes:
        pad: make a square by padding, else by cropping.
        columns_first: resize a tall picture in the order of Pillow before 13 and of the published VQAScores,
            else in that of the installed Pillow.
        to_even: round the crop's offset like torchvision, else down.
    """

    size: int
    mean: tuple[float, ...] = CLIP_MEAN
    std: tuple[float, ...] = CLIP_STD
    pad: bool = True
    columns_first: bool = True
    to_even: bool = False

    def __call__(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Pad to a centred square (or crop one), resize, scale to 0..1 and normalise."""
        square = (
            pad_and_resize(rgb, self.size, tuple(int(255 * m) for m in self.mean))
            if self.pad
            else resize_and_crop(rgb, self.size, self.columns_first, self.to_even)
        )
        pixels, normal = np.asarray(square), levels(self.mean, self.std)
        return torch.from_numpy(np.stack([normal[:, c].take(pixels[:, :, c]) for c in range(3)]))


@cache
def levels(mean: tuple[float, ...], std: tuple[float, ...]) -> np.ndarray:
    """Return the normalised value of each 8-bit value in each colour: (256, 3), float32."""
    scaled = (np.arange(256) * (1 / 255)).astype(np.float32)[:, None]
    normal: np.ndarray = (scaled - np.array(mean, np.float32)) / np.array(std, np.float32)
    return normal


def pad_and_resize(rgb: PIL.Image.Image, size: int, colour: tuple[int, ...]) -> PIL.Image.Image:
    """
    Pad *rgb* to a centred square, then resize it, without ever allocating the whole square.

    Bicubic resizing works on columns first, then on rows, each rounded to 8 bits, so the two passes can be
    separate:
    the first on strips (a 16000x1 picture would pad to 768 MB), the second on an image only *size* columns
    wide.
    """
    side = max(rgb.size)
    if rgb.width == rgb.height:
        columns = rgb.resize((size, side), PIL.Image.Resampling.BICUBIC)
        return columns.resize((size, size), PIL.Image.Resampling.BICUBIC)
    left, top = (side - rgb.width) // 2, (side - rgb.height) // 2
    columns = PIL.Image.new("RGB", (size, side), colour)
    for start in range(0, rgb.height, STRIP):
        rows = min(STRIP, rgb.height - start)
        strip = PIL.Image.new("RGB", (side, rows), colour)
        strip.paste(rgb.crop((0, start, rgb.width, start + rows)), (left, 0))
        columns.paste(strip.resize((size, rows), PIL.Image.Resampling.BICUBIC), (0, top + start))
    return columns.resize((size, size), PIL.Image.Resampling.BICUBIC)


def resize_and_crop(
    rgb: PIL.Image.Image, size: int, columns_first: bool, to_even: bool = False
) -> PIL.Image.Image:
    """
    Resize the shorter edge to *size*, then crop the centre.

    Pillow before 13 always resized columns first; Pillow 13 begins with the rows of a tall picture, with
    other rounding.
    """
    rgb = middle(rgb)
    short, long = sorted(rgb.size)
    scaled = int(size * long / short)
    width, height = (size, scaled) if rgb.width <= rgb.height else (scaled, size)
    if columns_first:
        rgb = rgb.resize((width, rgb.height), PIL.Image.Resampling.BICUBIC)
    resized = rgb.resize((width, height), PIL.Image.Resampling.BICUBIC)
    margins = width - size, height - size
    left, top = (round(margin / 2) if to_even else margin // 2 for margin in margins)
    return resized.crop((left, top, left + size, top + size))


def middle(rgb: PIL.Image.Image) -> PIL.Image.Image:
    """Crop the middle of a very long strip: resized whole, one of 16000x1 would take gigabytes."""
    longest = MAX_ASPECT * min(rgb.size)
    left, top = ((side - min(side, longest)) // 2 for side in rgb.size)
    return rgb.crop((left, top, rgb.width - left, rgb.height - top)) if left or top else rgb
