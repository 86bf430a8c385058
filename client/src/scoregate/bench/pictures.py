"""Pictures of a generator: in the folder that has them, and as rows to score."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import count
from os.path import relpath
from pathlib import Path
from typing import Any

from scoregate.bench.answers import GENERATOR, BenchmarkItem
from scoregate.bench.data import json_of
from scoregate.data.folders import pictures
from scoregate.data.rows import Row, composed, prompt_fault
from scoregate.data.tiles import Grid, tiles
from scoregate.records import BadInput, kind

NUMBERED = re.compile(r"(.+)_([0-9]+)", re.DOTALL)  # the name of one of several pictures

Options = Callable[[BenchmarkItem], Mapping[str, Any]]


@dataclass(frozen=True)
class Placed:
    """
    Pictures below a folder.

    Attributes:
        of_item: in order, by the item's id.
        others: the number of pictures of no item.
    """

    folder: Path
    of_item: Mapping[str, Sequence[Path]]
    others: int

    def rows(
        self, items: Sequence[BenchmarkItem], options: Options, sheet: Grid | None, *, skip_black: bool
    ) -> tuple[list[Row], list[str]]:
        """
        Return a row for each picture or tile, in the order of the items, and notes about the folder.

        Args:
            options: of the metrics, for an item.
            skip_black: leave out black tiles.
        """
        black, rows = 0, list[Row]()
        for item in items:
            number, own = count(), options(item)
            fault = prompt_fault(item.prompt)
            beside = {"source": [item.source] if item.source else [], "references": item.references}
            for path in self.of_item.get(item.id, ()):
                row = Row(
                    0,
                    relpath(path, self.folder),
                    item.prompt,
                    path,
                    fault=fault and f"item {item.id}: its prompt {fault}",
                    folder=self.folder,
                    any_path=any(path.is_absolute() for each in beside.values() for path in each),
                    related={name: [str(path) for path in each] for name, each in beside.items() if each},
                    options=own,
                )
                for each in tiles(row, sheet) if sheet else [row]:
                    if sheet and skip_black and is_black(each):
                        black += 1
                        continue
                    columns = {"item": item.id, "tile": next(number)}
                    rows.append(replace(each, number=len(rows) + 1, columns=columns))
        notes = [f"pictures of no prompt: {self.others}"] if self.others else []
        return rows, notes + ([f"black tiles skipped: {black}"] if black else [])


def pictures_of(path: Path, items: Sequence[BenchmarkItem], name: str) -> Placed | None:
    """
    Return the pictures in a folder, or in a JSON object of paths by prompt; None for another file.

    Raises:
        BadInput: as `pictures_in`, or no prompt of the object is that of an item.
    """
    if path.is_dir():
        return pictures_in(path, items, name)
    content = json_of(path) if kind(path) == ".json" else None
    if not (isinstance(content, Mapping) and all(isinstance(each, str) for each in content.values())):
        return None
    known = {item.prompt: item.id for item in items}
    found = {known[prompt]: [path.parent / file] for prompt, file in content.items() if prompt in known}
    if not found:
        raise BadInput(f"{path}: no prompt is one of the benchmark")
    return Placed(path.parent, found, len(content.keys() - known.keys()))


def pictures_in(folder: Path, items: Sequence[BenchmarkItem], name: str) -> Placed:
    """
    Return the pictures in *folder* by their names, and the number of others in the folders of items.

    Raises:
        BadInput: two files are the same picture, or none is of an item.
    """
    files = {item.id: Path(item.file.replace(GENERATOR, name)) for item in items}
    known = {without_zeros(file): id for id, file in files.items()}
    shared = any(GENERATOR in item.file for item in items)  # with the pictures of other generators
    own = {folder / file.parent for file in files.values()}
    sources = {folder / item.source for item in items if item.source}
    found: dict[str, dict[int, Path]] = defaultdict(dict)
    others = 0
    for path in sorted(pictures(folder)):
        stem, number = place_of(path.relative_to(folder), known)
        if stem not in known:
            others += path not in sources and (not shared or path.parent in own)
            continue
        id = known[stem]
        if number in found[id]:
            raise BadInput(f"{path} and {found[id][number]} are the same picture of item {id}")
        found[id][number] = path
    if not found:
        raise BadInput(f"{folder}: no picture has the name of an item, such as {next(iter(known))}.png")
    of_item = {id: [each[key] for key in sorted(each)] for id, each in found.items()}
    return Placed(folder, of_item, others)


def place_of(path: Path, known: Collection[str]) -> tuple[str, int]:
    """
    Return the name of a picture's item, and the number of the picture.

    One of several has `_` and its number at the end of its name.  A name that is not known ends at its first
    full stop.  Leading zeros do not count.
    """
    first = ""
    for name in (path.stem, path.name.partition(".")[0]):
        first, parts = without_zeros(path.parent / name), NUMBERED.fullmatch(name)
        if first in known:
            return first, 0
        if parts and (of_several := without_zeros(path.parent / parts[1])) in known:
            return of_several, int(parts[2])
    return first, 0


def without_zeros(path: Path) -> str:
    """Return a path, `composed`, whose last part has no leading zeros if it is a number."""
    number = path.name.isascii() and path.name.isdecimal()
    return composed((path.with_name(str(int(path.name))) if number else path).as_posix())


def is_black(row: Row) -> bool:
    """Return whether all pixels of a tile are black; False if it cannot be read, which scoring reports."""
    from PIL import Image

    try:
        with Image.open(BytesIO(row.read())) as tile:
            return tile.convert("RGB").getbbox() is None
    except (OSError, ValueError):
        return False
