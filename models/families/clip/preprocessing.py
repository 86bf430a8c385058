"""The preprocessing of open_clip, with equal pixels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import PIL.Image
import torch
from open_clip.transform import PreprocessCfg

from models.images.pixels import Preprocessor
from models.images.resize import resample, rows_go_first, taps_of


@dataclass(frozen=True, slots=True)
class Preprocessing(Preprocessor):
    """
    Pixels (3, height, width).

    Attributes:
        size: height and width.
        resize_mode: "shortest" edge, and the centre is cropped; "longest" edge, and the rest is filled; or
            "squash".
        bilinear: resize so, else bicubic.
        fill: of pixels around the picture, in each colour.
    """

    size: tuple[int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    resize_mode: str = "shortest"
    bilinear: bool = False
    fill: int = 0

    @classmethod
    def of(cls, config: dict[str, Any]) -> Self:
        """Return the preprocessing that open_clip's `preprocess_cfg` of a tower describes."""
        given = PreprocessCfg(**config)
        height, width = np.broadcast_to(given.size, 2).tolist()
        # open_clip resizes by the shortest edge to a picture that is not square with its default only.
        bicubic = given.resize_mode == "shortest" and height != width
        bilinear = given.interpolation == "bilinear" and not bicubic
        mean, std = (tuple(np.broadcast_to(each, 3).tolist()) for each in (given.mean, given.std))
        return cls((height, width), mean, std, given.resize_mode, bilinear, given.fill_color)

    def resized(self, rgb: PIL.Image.Image) -> torch.Tensor:
        """Resize, and crop or fill.  Raises `ValueError` for a strip without pixels then."""
        wanted = self._resized(*rgb.size)
        if not all(wanted):
            raise ValueError(f"the resized picture would have {wanted[0]}x{wanted[1]} pixels")
        axes = zip(rgb.size, wanted, self.size[::-1], strict=True)
        (across, columns), (down, rows) = (self._centre(*axis) for axis in axes)
        pixels = resample(rgb, across, down, rows_first=rows_go_first(rgb.size, wanted))
        if pixels.shape[1:] != self.size:
            whole = np.full((3, *self.size), self.fill, np.uint8)
            whole[:, rows, columns] = pixels
            pixels = whole
        return torch.from_numpy(pixels)

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height of the resized picture, before it is cropped or filled."""
        rows, columns = self.size
        if self.resize_mode == "squash":
            return columns, rows
        if self.resize_mode == "shortest" and rows == columns:
            longer = int(rows * max(width, height) / min(width, height))
            return (rows, longer) if width <= height else (longer, rows)
        ratios = height / rows, width / columns
        ratio = max(ratios) if self.resize_mode == "longest" else min(ratios)
        return round(width / ratio), round(height / ratio)

    def _centre(self, length: int, wanted: int, side: int) -> tuple[Any, slice]:
        """Return the taps along one axis, cropped to *side*, and the place of their results on it."""
        start, left = round(max(0, wanted - side) / 2), max(0, side - wanted) // 2
        taps = taps_of(length, wanted, self.bilinear, part=(start, start + side))
        return taps, slice(left, left + min(side, wanted))
