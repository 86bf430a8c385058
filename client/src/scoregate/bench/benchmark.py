"""
Benchmarks of generators: prompts out, and the answers about a folder of pictures.

A benchmark is a `Benchmark`: what its items are, how their pictures are scored, and which values the answers
give.  `figures` makes tables of these.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import count
from os.path import relpath
from pathlib import Path
from typing import Any, Generic, TypeVar

import scoregate
from scoregate.bench.answers import Answers, Found, Item, Reading, in_file, in_lines
from scoregate.bench.data import json_of
from scoregate.bench.geneval import generator
from scoregate.cli.arguments import (
    OK,
    UsageFault,
    add_concurrency,
    add_options,
    add_service,
    add_settings,
    connected,
    options_of,
    settings_of,
)
from scoregate.cli.batch import TIMEOUT_S, plan_of, tell
from scoregate.data.folders import pictures
from scoregate.data.rows import Row, composed, prompt_fault
from scoregate.data.tiles import GRID_HELP, Grid, grid_of, tiles
from scoregate.evaluation.outcome import Drawings
from scoregate.records import BadInput, kind
from scoregate.runs.results import Results
from scoregate.runs.scoring import Part, score
from scoregate.settings import setting, whole

GENERATOR = "{generator}"  # in the name of a picture
Values = Mapping[str, Sequence[float]]  # of an item, by figure; a figure is the mean of its values
Figures = Mapping[str, float]

NUMBERED = re.compile(r"(.+)_([0-9]+)", re.DOTALL)  # the name of one of several pictures


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


@dataclass(frozen=True)
class Paper:
    """
    The setting of the published figures, which cautions compare with.

    Attributes:
        model: its whole name, which a model of the service must have.
        prompts: their number; None: as many as there are in the data.
        pictures: of a prompt.
    """

    model: str
    prompts: int | None
    pictures: int = 1


@dataclass(frozen=True, kw_only=True)
class Settings:
    """
    What the items and the values of a benchmark depend on; a benchmark with settings of its own has more.

    Attributes:
        data: the user's copy of the authors' data.
        generators: names and paths; none where only the prompts are printed.
        grid: rows and columns of a sheet, such as 2x2; None if pictures are no sheets.
        resolution: side of a tile in pixels; None if the sheet is divided.
        options: of the metrics.
    """

    data: Path
    generators: Sequence[tuple[str, Path]] = ()
    complete: bool = setting(
        "a prompt without pictures, or without all answers about them, is an error, and not left out",
        default=False,
    )
    grid: str | None = None
    resolution: int | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class OfSheets(Settings):
    """Settings of pictures that are sheets."""

    grid: str | None = setting(GRID_HELP + " (default %(default)s)", metavar="RxC", default="2x2")
    resolution: int | None = setting(
        "side of a tile, from the top left of the sheet (default: the sheet is divided)",
        default=None,
        metavar="PIXELS",
        parse=whole,
    )


Own = TypeVar("Own", bound=Settings)


def as_given(settings: Own) -> Own:
    """Return the settings: none of them depends on the data."""
    return settings


def no_more(settings: Settings, figures: Figures) -> Figures:
    """Return no further figures."""
    return {}


def not_released(path: Path, items: Sequence[Item]) -> Found | None:
    """Return None: the authors have no format of answers."""
    return None


@dataclass(frozen=True)
class Benchmark(Generic[Own]):
    """
    A benchmark of generators.

    Attributes:
        data: what the user's copy of the data is.
        settings: their class.
        items: its prompts.
        reading: how pictures are scored, and the form of answers in a table.
        values: of an item, from the answers about its pictures, in order; none if the item is dropped.
        derived: further figures, from those that are means of values.
        released: the answers in the authors' own file or folder; None if the path is no such one.
        pooled: whether figures are means over all pictures, of which a prompt may have more than others.
        wording: whether the metric has the words of the paper's questions, or none.
        partial: whether a picture without answers is left out alone, and not all of its prompt.
        skip_black: whether a black tile stands for no picture.
        resolved: the settings with the defaults that depend on the data.
        notes: cautions of every row.
    """

    name: str
    data: str
    settings: type[Own]
    paper: Paper
    items: Callable[[Own], list[Item]]
    reading: Reading
    values: Callable[[Own, Item, Sequence[Answers]], Values]
    derived: Callable[[Own, Figures], Figures] = no_more
    released: Callable[[Path, Sequence[Item]], Found | None] = not_released
    pooled: bool = False
    wording: bool = False
    partial: bool = False
    skip_black: Callable[[Own], bool] = lambda settings: False
    resolved: Callable[[Own], Own] = as_given
    notes: Sequence[str] = ()


def own_settings(benchmark: Benchmark[Own], arguments: argparse.Namespace) -> Own:
    """Return the settings that arguments of the command give.  Raises `UsageFault`, `BadInput`, `OSError`."""
    common = {"data": arguments.data, "generators": arguments.generators, "options": options_of(arguments)}
    return benchmark.resolved(settings_of(benchmark.settings, arguments, **common))


def add_benchmark(benchmark: Benchmark[Any], parser: argparse.ArgumentParser) -> None:
    """Declare the data, the generators, how pictures are scored, the intervals, and the settings."""
    add = parser.add_argument
    add("data", type=Path, metavar="DATA", help=benchmark.data)
    what = "a generator: a folder of pictures, or a file of answers about them"
    named = add("generators", nargs="+", default=[], type=generator, metavar="NAME=PATH", help=what)
    named.required = False  # with `*` none could stand after an option
    what = "print a line of JSON for each prompt, with the names of its pictures, in place of the tables"
    writer = partial(write_prompts, benchmark)
    add("--prompts", dest="run", action="store_const", const=writer, default=argparse.SUPPRESS, help=what)
    what = "the folder of the results of scoring (default: that of the pictures)"
    add("-o", "--out", type=Path, metavar="FOLDER", help=what)
    add_options(parser)
    add_concurrency(parser)
    add_service(parser)
    add_settings(parser, Drawings)
    add_settings(parser, benchmark.settings)


def sheet_of(settings: Settings) -> Grid | None:
    """Return the grid of each picture, None if pictures are no sheets."""
    return grid_of(settings.grid)._replace(side=settings.resolution) if settings.grid else None


def write_prompts(benchmark: Benchmark[Any], arguments: argparse.Namespace) -> int:
    """Print what a generator needs: id, prompt, and the names, seeds and grid of the pictures."""
    settings = own_settings(benchmark, arguments)
    sheet, several = sheet_of(settings), benchmark.paper.pictures
    for item in benchmark.items(settings):
        one = sheet or several == 1
        files = [item.file] if one else item.names(several)
        line: dict[str, Any] = {
            "id": item.id,
            "prompt": item.prompt,
            "files": [f"{each}.png" for each in files],
        }
        if item.source:
            line["source"] = str(item.source)
        elif item.references:  # those of an item with a source show what its picture should be
            line["references"] = [str(path) for path in item.references]
        line["seeds"] = [*range(sheet.tiles if sheet else several)]
        print(json.dumps(line | ({"grid": settings.grid} if sheet else {}), ensure_ascii=False))
    return OK


def answers_of(
    benchmark: Benchmark[Own], arguments: argparse.Namespace, settings: Own, items: Sequence[Item]
) -> dict[str, Found]:
    """
    Return the answers about each generator's pictures; those in folders are scored.

    Raises:
        UsageFault: no generator is named, or one twice, or its pictures cannot be scored.
        BadInput: a file or a folder is not valid.
    """
    names = dict(arguments.generators)
    if not names or len(names) < len(arguments.generators):
        raise UsageFault("two generators have one name" if names else "name a generator: NAME=PATH")
    if wrong := [name for name in names if Path(name).name != name]:
        raise UsageFault(f"{wrong[0]}: the name of a generator is part of the name of a file")
    found: dict[str, Found] = {}
    with ExitStack() as stack:
        client = vars(arguments).get("client")  # of a suite, for all of its benchmarks
        for name, path in names.items():
            if (own := benchmark.released(path, items)) is not None:
                found[name] = own
            elif placed := pictures_of(path, items, name):
                client = client or stack.enter_context(connected(arguments, TIMEOUT_S))
                rows, notes = rows_of(benchmark, settings, items, placed)
                found[name] = scored(benchmark, arguments, items, name, rows, placed.folder, client)
                found[name].notes += notes
            else:
                found[name] = in_file(path, items, benchmark.reading)
    return found


def scored(
    benchmark: Benchmark[Any],
    arguments: argparse.Namespace,
    items: Sequence[Item],
    name: str,
    rows: Sequence[Row],
    folder: Path,
    client: scoregate.Client,
) -> Found:
    """Score pictures; the next run continues the results, which stand in their folder or in `--out`."""
    plan = plan_of(
        client.models(),
        benchmark.reading.metrics,
        options_of(arguments),
        explain=True,
        strict=arguments.strict,
        orient=arguments.orient,
    )
    out = arguments.out or folder
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{benchmark.name}-{name}.jsonl"
    with Results(file, plan) as results:
        part = nullcontext(Part(rows, results))
        sent = score(client, plan, [part], arguments.concurrency, len(rows))
        tell(results.lines, sent, file, len(results.left_over))
        return in_lines(results.lines(), items, benchmark.reading)


def rows_of(
    benchmark: Benchmark[Own], settings: Own, items: Sequence[Item], placed: Placed
) -> tuple[list[Row], list[str]]:
    """Return a row for each picture or tile, in the order of the items, and notes about the folder."""
    sheet, black, rows = sheet_of(settings), 0, list[Row]()
    for item in items:
        options, number = benchmark.reading.options(item), count()
        fault = prompt_fault(item.prompt)
        beside = {"source": [item.source] if item.source else [], "references": item.references}
        for path in placed.of_item.get(item.id, ()):
            row = Row(
                0,
                relpath(path, placed.folder),
                item.prompt,
                path,
                fault=fault and f"item {item.id}: its prompt {fault}",
                folder=placed.folder,
                any_path=any(path.is_absolute() for each in beside.values() for path in each),
                related={name: [str(path) for path in each] for name, each in beside.items() if each},
                options=options,
            )
            for each in tiles(row, sheet) if sheet else [row]:
                if sheet and benchmark.skip_black(settings) and is_black(each):
                    black += 1
                    continue
                columns = {"item": item.id, "tile": next(number)}
                rows.append(replace(each, number=len(rows) + 1, columns=columns))
    notes = [f"pictures of no prompt: {placed.others}"] if placed.others else []
    return rows, notes + ([f"black tiles skipped: {black}"] if black else [])


def pictures_of(path: Path, items: Sequence[Item], name: str) -> Placed | None:
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


def pictures_in(folder: Path, items: Sequence[Item], name: str) -> Placed:
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
