"""Grids of plain pictures, and the colours of their cells."""

import PIL.Image

from models.images.grid import Grid
from models.images.image import Image
from tests.support.films import plain

BLACK = (0, 0, 0)


def stills(*colours: str, size=(4, 4)) -> list[Image]:
    return [Image.of(plain(colour, size)) for colour in colours]


def grid(pictures) -> Grid:
    return Grid(pictures, [f"frame {number}" for number in range(len(pictures))])


def cells(found: Grid) -> list[tuple[int, ...]]:
    """The pixel in the middle of each cell, row by row."""
    width, height = (each // found.side for each in found.size)
    middles = [
        (column * width + width // 2, row * height + height // 2)
        for row in range(found.side)
        for column in range(found.side)
    ]
    return [found.rgb.getpixel(middle) for middle in middles]


def of(*names: str) -> list[tuple[int, ...]]:
    return [PIL.Image.new("RGB", (1, 1), name).getpixel((0, 0)) for name in names]
