"""Preprocessing of the CLIP image processor (8-bit bicubic, centre crop, normalise)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import PIL.Image
import torch

from models.images.kernels import look_up
from models.images.resize import Colour, resample, rows_go_first, taps_of

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
MAX_ASPECT = 64  # longer side over shorter; the rest is far outside the centre crop


class Preprocessor(ABC):
    """
    A resize to 8 bits on the host, and a normalisation on any device: a GPU gets a quarter of the bytes.

    Attributes:
        mean, std: of each colour, between 0 and 1.
    """

    __slots__ = ()

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @abstractmethod
    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return the pixels of the network's input: (3, height, width), uint8."""

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        """Normalise resized pixels (..., 3, height, width) on their device: float32."""
        return normalised(pixels, self.mean, self.std)

    def __call__(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Return the normalised pixels of one picture: (3, height, width), float32."""
        return self.normalised(self.resized(rgb))


@dataclass(frozen=True, slots=True)
class Pixels(Preprocessor):
    """
    The pixels of a square (3, size, size).

    Attributes:
        pad: make a square by padding, else by cropping.
        columns_first: resize a tall picture in the order of Pillow before 13 and of the published VQAScores,
            else in the order of Pillow 13.
        to_even: round the crop's offset like torchvision, else down.
    """

    size: int
    mean: tuple[float, ...] = CLIP_MEAN
    std: tuple[float, ...] = CLIP_STD
    pad: bool = True
    columns_first: bool = True
    to_even: bool = False

    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Pad to a centred square (or crop one), and resize."""
        square = (
            pad_and_resize(rgb, self.size, tuple(int(255 * m) for m in self.mean))
            if self.pad
            else resize_and_crop(rgb, self.size, self.columns_first, self.to_even)
        )
        return torch.from_numpy(square)


def normalised(pixels: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """
    Scale 8-bit pixels (..., 3, H, W) to 0..1 and normalise them on their device: float32.

    On a CPU, each byte's number is looked up: half the time of three operations on floats.
    """
    if pixels.device.type != "cpu" or pixels.dtype != torch.uint8:
        return computed(pixels, mean, std)
    return looked_up(pixels, table(tuple(mean), tuple(std)))


def looked_up(pixels: torch.Tensor, table: np.ndarray) -> torch.Tensor:
    """
    Return the number of each byte on its device: (..., 3, H, W), float32.

    Args:
        pixels: (..., 3, H, W), uint8.
        table: the number of each byte of each colour: (3, 256), float32.
    """
    if pixels.device.type != "cpu":
        return gathered(pixels, torch.from_numpy(table).to(pixels.device, non_blocking=True))
    planes = pixels.contiguous().flatten(-2)
    numbers = torch.empty_like(planes, dtype=torch.float32)
    look_up(planes.flatten(0, -2).numpy(), table, numbers.flatten(0, -2).numpy())
    return numbers.view(pixels.shape)


def gathered(pixels: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Look the number of each byte up by PyTorch's operations, see `looked_up`."""
    first = torch.arange(0, table.numel(), table.shape[1], dtype=torch.int32, device=pixels.device)
    return (
        table.flatten().index_select(0, pixels.int().add_(first[:, None, None]).flatten()).view(pixels.shape)
    )


def computed(pixels: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """
    Normalise 8-bit pixels by arithmetic, see `normalised`.

    Each step is rounded once, so a GPU and a CPU return equal bits.  The divisors are tensors: for a division
    by a Python number, a GPU multiplies by the reciprocal, which rounds once more.
    """
    steps = torch.tensor([[255.0] * 3, mean, std], dtype=torch.float32)
    whole, centre, spread = steps.to(pixels.device, non_blocking=True)[..., None, None]
    return pixels.float().div_(whole).sub_(centre).div_(spread)


@lru_cache
def table(mean: tuple[float, ...], std: tuple[float, ...]) -> np.ndarray:
    """Return the number of each byte of each colour: (3, 256), float32."""
    levels = torch.arange(256, dtype=torch.uint8).expand(len(mean), 1, 256)
    numbers: np.ndarray = computed(levels, mean, std)[:, 0].numpy()
    return numbers


def pad_and_resize(rgb: PIL.Image.Image, size: int, colour: Colour) -> np.ndarray:
    """
    Pad *rgb* to a centred square, then resize it, columns first: (3, size, size), uint8.

    The square is not allocated: for a 16000x1 picture it would take 768 MB.  Its margins have one colour, so
    the weights of their pixels are added up.
    """
    side = max(rgb.size)
    across, down = (taps_of(side, size, inside=((side - length) // 2, length)) for length in rgb.size)
    return resample(rgb, across, down, colour)


def resize_and_crop(
    rgb: PIL.Image.Image, size: int, columns_first: bool, to_even: bool = False
) -> np.ndarray:
    """
    Resize the shorter edge to *size*, then crop the centre: (3, size, size), uint8.

    Only pixels inside the crop are computed.  Pillow before 13 always resized columns first; Pillow 13
    begins with the rows of a tall picture, with other rounding.
    """
    rgb = middle(rgb)
    short, long = sorted(rgb.size)
    scaled = int(size * long / short)
    wanted = (size, scaled) if rgb.width <= rgb.height else (scaled, size)
    margins = [length - size for length in wanted]
    left, top = (round(margin / 2) if to_even else margin // 2 for margin in margins)
    across = taps_of(rgb.width, wanted[0], part=(left, left + size))
    down = taps_of(rgb.height, wanted[1], part=(top, top + size))
    return resample(rgb, across, down, rows_first=not columns_first and rows_go_first(rgb.size, wanted))


def middle(rgb: PIL.Image.Image) -> PIL.Image.Image:
    """Crop the middle of a very long strip: a whole strip of 16000x1, resized, would take gigabytes."""
    longest = MAX_ASPECT * min(rgb.size)
    left, top = ((side - min(side, longest)) // 2 for side in rgb.size)
    return rgb.crop((left, top, rgb.width - left, rgb.height - top)) if left or top else rgb
