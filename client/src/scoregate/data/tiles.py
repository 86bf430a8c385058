"""Sheets: pictures that hold several pictures in a grid, each of which is scored alone."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import NamedTuple

from scoregate.data.datasets import Dataset, renumbered
from scoregate.data.rows import Row
from scoregate.errors import BadImageError, InputError, named, reason_of
from scoregate.images import of_pillow

GRID = re.compile(r"([1-9]\d?)x([1-9]\d?)", re.ASCII)


class Grid(NamedTuple):
    """
    Tiles of a sheet, counted from 0, row by row.

    Attributes:
        side: of a tile, in pixels from the top left; by default all of the sheet is divided.
    """

    columns: int
    rows: int
    side: int | None = None

    @property
    def tiles(self) -> int:
        """Their number."""
        return self.columns * self.rows


ONE_TILE = Grid(1, 1)


def grid_of(text: str) -> Grid:
    """
    Return the grid in a text such as `2x2`, rows first.

    Raises:
        InputError: it has another form, or Pillow is not installed.
    """
    if not (found := GRID.fullmatch(text)):
        raise InputError(f"{named('grid', text)}: it has the form ROWSxCOLUMNS, such as 2x2")
    if not find_spec("PIL"):
        raise InputError(f"{named('grid')} needs Pillow: pip install pillow")
    return Grid(rows=int(found[1]), columns=int(found[2]))


@dataclass(frozen=True)
class Tile(Row):
    """A row whose picture is one tile of a sheet; the name is that of the sheet, with `#` and its number."""

    grid: Grid = ONE_TILE
    number_in_sheet: int = 0

    def read(self) -> bytes:
        """Return the tile as a BMP.  Raises as `Row.read`, and `ValueError` if the sheet is too small."""
        return cut(super().read(), self.grid, self.number_in_sheet)

    def read_frames(self) -> list[bytes]:
        """Return the tile alone."""
        return [self.read()]


def tiles(row: Row, grid: Grid) -> Iterator[Tile]:
    """Yield the tiles of a row whose picture is a sheet, in columns `sheet` and `tile`."""
    values = {field.name: getattr(row, field.name) for field in fields(Row)}
    for number in range(grid.tiles):
        name = row.image and f"{row.image}#{number}"
        columns = {**row.columns, "sheet": row.image, "tile": number}
        own = values | {"image": name, "columns": columns}
        yield Tile(**own, grid=grid, number_in_sheet=number)


def cut(sheet: bytes, grid: Grid, number: int) -> bytes:
    """Return a tile of a sheet as a BMP.  Raises `ValueError`."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(sheet)) as image:
            width, height = grid.side or image.width // grid.columns, grid.side or image.height // grid.rows
            row, column = divmod(number, grid.columns)
            box = (column * width, row * height, (column + 1) * width, (row + 1) * height)
            if not (width and height and box[2] <= image.width and box[3] <= image.height):
                raise ValueError(f"a sheet of {image.width} x {image.height} pixels has no tile {number}")
            return of_pillow(image.crop(box))
    except (OSError, SyntaxError, BadImageError, Image.DecompressionBombError) as exc:
        raise ValueError(f"the sheet cannot be read: {reason_of(exc)}") from None


@dataclass(frozen=True)
class Sheets(Dataset):
    """A data set whose pictures are sheets: a row for each tile."""

    grid: Grid = ONE_TILE

    def __iter__(self) -> Iterator[Row]:
        return renumbered(tile for row in super().__iter__() for tile in tiles(row, self.grid))

    def count(self) -> int | None:
        """Return the number of tiles; None for shards."""
        sheets = super().count()
        return sheets and sheets * self.grid.tiles
