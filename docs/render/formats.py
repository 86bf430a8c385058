"""`formats.md`: the formats that are read, from the tables of the readers."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from docs.render.markdown import code, first_line, join, prose, rest, table
from models.images.formats.registry import FORMATS
from scoregate.bench import GENERATORS, METRICS, Declaration
from scoregate.data import datasets, rows
from scoregate.data.folders import METADATA, TEXTS
from scoregate.data.rows import IMAGES, SHARDS, VIDEOS
from scoregate.records import READERS
from scoregate.runs import results
from scoregate.runs.batch_settings import KINDS as RESULTS
from service.questions.exchange.files import formats

INTRO = """
# Formats that are read

What [`scoregate batch`](cli.md#batch), `versus`, `report` and the other commands read, and what the service
decodes.
"""
TABLES = """
## Tables

Data sets, metadata, prompts, results, ratings and answers are tables. A name may end in `.gz`. Text is
UTF-8.
"""
PICTURES = """
## Pictures and videos

What [`images.formats`](configuration.md#images) may list. The pixels are those of Pillow's
`convert("RGB")`, as sRGB: an embedded ICC profile is not applied ([warnings](api.md#warnings)). HEIC is
converted by the client, with the package `pillow-heif`.
"""
SETS = """
## Question sets

`scoregate-server questions import FILE --format NAME`; a name may end in `.gz`:
"""
ANSWERS = """
## Benchmarks

Your copy of the authors' data, and scores or answers. Of generators these are folders of pictures, which
are scored, or tables of answers about them.
"""


def page() -> str:
    """Return the page."""
    return join(
        INTRO,
        "## Data sets",
        rest(datasets.__doc__),
        files(),
        "## Columns of a data set",
        rest(rows.__doc__),
        "## Result files",
        f"`-o OUT` is {code(*RESULTS)}, or of shards a folder.",
        rest(results.__doc__),
        TABLES,
        table(("suffix", "rows"), readers()),
        PICTURES,
        table(("format", "about"), images()),
        SETS,
        table(("format", "about"), sets()),
        ANSWERS,
        *(
            part
            for heading, declared in (("metrics", METRICS), ("generators", GENERATORS))
            for part in answers(heading, declared)
        ),
    )


def files() -> str:
    """Return the table of the suffixes of files in data sets."""
    return table(
        ("files", "names"),
        [
            ["pictures", code(*sorted(IMAGES))],
            ["videos", code(*sorted(VIDEOS))],
            ["shards", code(*SHARDS)],
            ["metadata of a folder", code(*METADATA)],
            ["texts, which are no pictures", code(*sorted(TEXTS))],
        ],
    )


def readers() -> Iterator[list[str]]:
    """Yield a row for each reader of tables, with its suffixes."""
    suffixes: dict[Any, list[str]] = {}
    for suffix, reader in READERS.items():
        suffixes.setdefault(reader, []).append(suffix)
    for reader, names in suffixes.items():
        yield [code(*names), first_line(reader.__doc__).removeprefix("Yield ")]


def images() -> Iterator[list[str]]:
    """Yield a row for each format of pictures."""
    for name, format in FORMATS.items():
        frames = "Of an animation or a video all frames can be scored." if format.film else ""
        yield [code(name), f"{format.about} {frames}".strip()]


def sets() -> Iterator[list[str]]:
    """Yield a row for each format of question sets."""
    for name, format in formats().items():
        module = inspect.getmodule(format.parse)
        yield [code(name), " ".join(prose(module.__doc__ if module else "").split())]


def answers(heading: str, declared: Mapping[str, Declaration]) -> Iterator[str]:
    """Yield the table of some benchmarks."""
    yield f"### Benchmarks of {heading}"
    yield table(
        ("benchmark", "about", "data", "answers"),
        [
            [code(each.name), each.help, each.benchmark.data, each.benchmark.answers]
            for each in declared.values()
        ],
    )
