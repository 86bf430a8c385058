"""Several pictures as one square grid, row by row (Lin et al. 2024, appendix F, views of 3D models)."""

import hashlib
from collections.abc import Sequence
from itertools import groupby
from math import ceil, sqrt

import PIL.Image

from models.images.formats.contract import Header, ImageError
from models.images.formats.pillow import TRANSPARENT_KEY
from models.images.image import Image, lossless

BYTES_PER_PIXEL = 4  # Pillow holds the grid's RGB so


def side(count: int) -> int:
    """Return the number of rows, and of columns, of a grid of *count* pictures."""
    return ceil(sqrt(count))


class Grid(Image):
    """
    An n x n grid of pictures, n as small as possible; unused cells are black.

    A cell is as wide as the widest picture and as high as the highest.  Smaller ones are centred, not
    scaled.  The pictures are decoded and released one after the other, so they must not be shared.  The
    digest is computed from the digests of the pictures.

    Args:
        images: from left to right, from top to bottom.
        names: of the pictures, in errors.
    """

    def __init__(self, images: Sequence[Image], names: Sequence[str]) -> None:
        content = "\n".join(["grid", *(image.digest for image in images)])
        super().__init__(b"", hashlib.sha256(content.encode()).hexdigest())
        self._images, self._names = images, names
        self.is_bound = any(image.file.is_bound for image in images)
        self.side = side(len(images))
        self._cell = [max(each) for each in zip(*(image.size for image in images), strict=True)]
        width, height = (self.side * each for each in self._cell)
        largest = max(image.header.memory for image in images)
        self.header = Header("grid", width, height, width * height * BYTES_PER_PIXEL + largest)

    @property
    def encoded(self) -> bytes:
        """The pixels as a PNG file."""
        return lossless(self.rgb)

    def _decoded(self) -> PIL.Image.Image:
        grid = PIL.Image.new("RGB", self.size)
        grid.info[TRANSPARENT_KEY] = False
        for file, of_file in groupby(range(len(self._images)), lambda number: self._images[number].file):
            file.reserve()  # the memory of the grid has room
            try:
                for number in of_file:
                    self._copy(number, grid)
            finally:
                file.release(lambda: None)
        return grid

    def _copy(self, number: int, grid: PIL.Image.Image) -> None:
        """Paste one picture into the centre of its cell.  Raises `ImageError` with the picture's name."""
        (row, column), (across, down) = divmod(number, self.side), self._cell
        try:
            pixels = self._images[number].rgb
        except ImageError as exc:
            raise type(exc)(f"{self._names[number]}: {exc}") from None
        grid.info[TRANSPARENT_KEY] |= pixels.info.get(TRANSPARENT_KEY, False)
        left, top = (across - pixels.width) // 2, (down - pixels.height) // 2
        grid.paste(pixels, (column * across + left, row * down + top))
