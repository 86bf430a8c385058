"""
Preprocessing of the CLIP image processor (8-bit bicubic, centre crop, normalise).

The resize of RGB pictures is Pillow's, equal to the bit, in about a quarter of its time.  Pillow weighs 8-bit
pixels by whole numbers, first along one axis, then along the other, each rounded to 8 bits.  Sums of integers
do not depend on their order, so any loop gives Pillow's pixels (ADR 0028).
"""

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import PIL.Image
import torch

from models.images.kernels import CHANNELS, FRACTION_BITS, ROWS_AT_ONCE, blend, blend_columns, look_up

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
MAX_ASPECT = 64  # longer side over shorter; the rest is far outside the centre crop
BLACK = (0, 0, 0)
CACHED_AXES = 128  # the taps of an axis of 16,000 pixels take 256 kB

Colour = tuple[int, ...]


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


@dataclass(frozen=True, slots=True)
class Taps:
    """
    How pixels along one axis are weighed.

    Attributes:
        start, stop: the pixels that are weighed; the spans count from *start*.
        spans: (n, 3), see `blend`.
        weights: (n, taps), see `blend`.
    """

    start: int
    stop: int
    spans: np.ndarray
    weights: np.ndarray


@lru_cache(CACHED_AXES)
def taps_of(
    length: int,
    wanted: int,
    bilinear: bool = False,
    part: tuple[int, int] | None = None,
    inside: tuple[int, int] | None = None,
) -> Taps:
    """
    Return the taps that resize *length* pixels to *wanted*: bicubic with a = -0.5, or bilinear.

    Args:
        part: start and stop of the results that are used; all by default.
        inside: start and number of the pixels that exist, by default all; the other pixels have one value,
            the fill.
    """
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
    weights = np.trunc(shares * (1 << FRACTION_BITS) + np.copysign(0.5, shares)).astype(np.int32)
    return cut(np.stack([first, count], 1), weights, part or (0, wanted), inside or (0, length))


def cut(spans: np.ndarray, weights: np.ndarray, part: tuple[int, int], inside: tuple[int, int]) -> Taps:
    """Return the taps of some results, with the weights of pixels that do not exist added up."""
    (first, count), weights, (start, length) = spans[slice(*part)].T, weights[slice(*part)], inside
    ends = np.clip([first, first + count], start, start + length) - start
    kept = ends[1] - ends[0]
    skipped = np.where(kept > 0, ends[0] + start - first, 0)
    taps = np.arange(weights.shape[1])
    places = np.minimum(taps + skipped[:, None], taps[-1])
    within = np.where(taps < kept[:, None], np.take_along_axis(weights, places, 1), 0)
    outside = weights.sum(1) - within.sum(1)
    used = ends[:, kept > 0]
    least, most = (int(used[0].min()), int(used[1].max())) if used.size else (0, 1)
    columns = np.stack([np.where(kept > 0, ends[0] - least, 0), kept, outside], 1)
    return Taps(least, most, columns.astype(np.int32), within.astype(np.int32))


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
    """Return True if Pillow 13 resizes rows first: the picture loses more than twice as many rows."""
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
    pixels = words(rgb)[down.start : down.stop]
    if rows_first:
        pixels = lines_of(pixels.view(np.uint8), down, BLACK).view(np.uint32)
    planes = columns_of(pixels[:, across.start : across.stop], across, colour)
    if not rows_first:
        planes = lines_of(planes.reshape(len(planes), -1), down, colour).reshape(-1, *planes.shape[1:])
    return np.ascontiguousarray(planes[:, :, : len(across.spans)].transpose(1, 0, 2))


def columns_of(pixels: np.ndarray, across: Taps, colour: Colour) -> np.ndarray:
    """Weigh the columns of *pixels* (H, W) in words; (H, 3, columns), padded to a multiple of four."""
    planes = np.empty((len(pixels), CHANNELS, -(-len(across.spans) // 4)), np.uint32)
    fill = np.repeat(np.array(colour, np.int32), ROWS_AT_ONCE)
    blend_columns(pixels, across.spans, across.weights, fill, planes)
    return planes.view(np.uint8)


def lines_of(lines: np.ndarray, down: Taps, colour: Colour) -> np.ndarray:
    """Weigh *lines* (N, L), each of one channel after the other: (rows, L)."""
    blended = np.empty((len(down.spans), lines.shape[1]), np.uint8)
    fill = np.repeat(np.array(colour, np.int32), -(-lines.shape[1] // CHANNELS))
    blend(lines, down.spans, down.weights, fill, blended)
    return blended


class ArrowArray(ctypes.Structure):
    """An array in memory.  https://arrow.apache.org/docs/format/CDataInterface.html"""


ArrowArray._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "nulls", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
]
pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class PillowsMemory:
    """
    The memory of an RGB picture, for numpy.

    Raises `ValueError` if the memory is in several pieces; only a copy has one stride then.
    """

    def __init__(self, rgb: PIL.Image.Image) -> None:
        _, self._owner = rgb.__arrow_c_array__()  # keeps the memory
        array = ArrowArray.from_address(pointer(self._owner, b"arrow_array"))
        self.__array_interface__ = {
            "data": (array.children[0].contents.buffers[1], True),  # True: it is not written to
            "shape": (rgb.height, rgb.width),
            "typestr": "<u4",
            "version": 3,
        }


def words(rgb: PIL.Image.Image) -> np.ndarray:
    """Return the pixels as (H, W) words of red, green, blue and an unused byte; a copy only if needed."""
    try:
        return np.asarray(PillowsMemory(rgb))
    except ValueError:
        return np.frombuffer(rgb.tobytes("raw", "RGBX"), np.uint32).reshape(rgb.height, rgb.width)
