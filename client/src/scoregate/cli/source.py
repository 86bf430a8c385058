"""The arguments that name a data set, and say how it is read."""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import UsageFault, add_concurrency, add_grid, metrics_of
from scoregate.data.columns import sweep_of
from scoregate.data.datasets import Dataset
from scoregate.data.folders import captions_alone, is_generated, left_out
from scoregate.data.rows import prompt_fault
from scoregate.data.tiles import Sheets, grid_of
from scoregate.progress import LEFT_OUT, say_unused
from scoregate.records import kind
from scoregate.runs.manifest import NAMES
from scoregate.text import shown

PROMPT_COLUMN = Dataset.prompt_column
OF_A_FOLDER = ("prompt", "prompts", "prompt_from_name")  # where the prompts of a folder come from
ABOUT_PROMPTS = (
    "--prompt",
    "--prompts",
    "--prompt-from-name",
    "--prompt-column",
    "--matrix",
)  # not with --no-prompt


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments for the data set, its columns and the concurrency."""
    add = parser.add_argument
    add(
        "dataset",
        type=Path,
        metavar="DATASET",
        help="a folder with captions, metadata or shards, a .jsonl, .csv, .tsv, .parquet or .tar, a pattern",
    )
    add("--image-column", metavar="NAME", help="default image; file_name in a folder's metadata")
    add("--prompt-column", metavar="NAME", default="prompt", help="default %(default)s")
    add("-p", "--prompt", help="of all pictures of a folder, in place of captions")
    add(
        "--prompts",
        type=Path,
        metavar="FILE",
        help="of the pictures of a folder by name, in place of captions: a JSON object, or a table",
    )
    add(
        "--prompt-from-name",
        metavar="REGEX",
        help="of the pictures of a folder, in their names: the first group, with underscores as spaces",
    )
    add("--no-prompt", action="store_true", help="read no prompts, for metrics that need none")
    add(
        "--image-part",
        metavar="PART",
        help="of several pictures of a sample in a tar: left for KEY.left.png",
    )
    add("--frames-column", metavar="NAME", help="lists of frames or views, in place of one picture")
    add(
        "--metrics-column",
        metavar="NAME",
        help="the metrics of each row, a list or names with commas, of those that are given",
    )
    add(
        "--option-column",
        action="append",
        default=[],
        metavar="METRIC.OPTION=COLUMN",
        help="a column with an option of each row, such as ocr.text=wanted",
    )
    add(
        "--matrix",
        action="store_true",
        help="score each picture of a row with each of its texts; columns may be lists, or named with commas",
    )
    add(
        "--sweep",
        action="append",
        default=[],
        metavar="METRIC.OPTION=FILE",
        help="score each row with each value of an option, a line of FILE each",
    )
    add_grid(parser)
    add("--any-path", action="store_true", help="read pictures outside the data set's folder, too")
    add_concurrency(parser)


def given_in(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that say how a data set is read, by name."""
    return {name: getattr(arguments, name) for name in (*NAMES, "sweep")}


def named(arguments: argparse.Namespace) -> Dataset:
    """Return the data set that the arguments name.  Raises as `dataset_of`."""
    return dataset_of(arguments.dataset, metrics_of(arguments), given_in(arguments))


def dataset_of(path: Path, metrics: Sequence[str], given: Mapping[str, Any]) -> Dataset:
    """
    Return a data set.

    Args:
        given: arguments by name, as of `given_in`.

    Raises:
        UsageFault: arguments have another form, or do not go together.
    """
    plain = {name: value for name, value in given.items() if name not in ("option_column", "sweep", "grid")}
    if plain.get("matrix") and plain.get("frames_column"):
        raise UsageFault("--matrix and --frames-column: give one of them")
    if (grid := given.get("grid")) and plain.get("frames_column"):
        raise UsageFault("--grid and --frames-column: give one of them")
    others = plain.get("matrix") or plain.get("prompt_column", PROMPT_COLUMN) != PROMPT_COLUMN
    prompts = {f"--{name.replace('_', '-')}": plain.get(name) for name in OF_A_FOLDER}
    if plain.get("no_prompt") and (others or any(value is not None for value in prompts.values())):
        raise UsageFault(f"--no-prompt reads no prompts: leave out {', '.join(ABOUT_PROMPTS)}")
    check_prompts(path, prompts)
    renamed = dict(map(renaming, given.get("option_column", ())))
    sweeps = [sweep_of(text) for text in given.get("sweep", ())]
    for name in (*renamed, *(sweep.name for sweep in sweeps)):
        if name.rpartition(".")[0] not in metrics:
            raise UsageFault(f"{shown(name)}: this metric is not scored, see --metric")
    found = Dataset(path, option_columns=renamed, sweeps=sweeps, metrics=metrics, **plain)
    return Sheets(**vars(found), grid=grid_of(grid)) if grid else found


def renaming(text: str) -> tuple[str, str]:
    """Return the option and the column of an argument `METRIC.OPTION=COLUMN`.  Raises `UsageFault`."""
    name, _, column = text.partition("=")
    if not column or not all(name.rpartition(".")):
        raise UsageFault(f"--option-column {shown(text)}: it has the form METRIC.OPTION=COLUMN")
    return name, column


def check_prompts(folder: Path, given: Mapping[str, Any]) -> None:
    """Raise `UsageFault` if *folder* has prompts of its own, or one of the arguments *given* is not valid."""
    names = [name for name, value in given.items() if value is not None]
    if names[1:]:
        raise UsageFault(f"{' and '.join(names)}: give one of them")
    if names and (Dataset(folder).shards or Dataset(folder).table is not None or is_generated(folder)):
        raise UsageFault(f"{names[0]} is for a folder of pictures alone: {folder} has prompts of its own")
    if (prompt := given["--prompt"]) is not None and (fault := prompt_fault(prompt)):
        raise UsageFault(f"--prompt {fault}")
    try:
        re.compile(given["--prompt-from-name"] or "")
    except re.error as exc:
        raise UsageFault(f"--prompt-from-name: no regular expression ({exc})") from None


def check(dataset: Dataset, out: Path, page: Path | None) -> None:
    """Raise `UsageFault` now for faults that would otherwise show after all is scored."""
    files = dataset.shards or list(filter(None, [dataset.table]))
    if not files and (given := about_columns(dataset)):
        raise UsageFault(f"{given[0]}: this folder has no table, but a text file for each picture")
    files += filter(None, [dataset.prompts])
    read = {file.resolve() for file in files}
    for path, what in ((out, "results"), (page, "page")):
        if path and path.resolve() in read:
            raise UsageFault(f"{path}: the {what} would overwrite the data set")
        if path and not path.parent.is_dir():
            raise UsageFault(f"{path}: there is no folder {path.parent}")
    if page and page.resolve() == out.resolve():
        raise UsageFault(f"{page}: the page would overwrite the results")
    if dataset.image_part and {kind(shard) for shard in dataset.shards} != {".tar"}:
        raise UsageFault("--image-part is for the pictures in tar files")
    if (
        not (files or dataset.no_prompt or dataset.prompt_from_name)
        and dataset.prompt is None
        and (alone := captions_alone(dataset.path))
    ):
        say_unused("text files without a picture of the same name", alone)
    if dataset.path.is_dir() and not (dataset.shards or dataset.table or is_generated(dataset.path)):
        say_unused(LEFT_OUT, left_out(dataset.path))


def about_columns(dataset: Dataset) -> list[str]:
    """Return the arguments that need a table."""
    given = {
        "--image-column": dataset.image_column and not dataset.prompts,
        "--prompt-column": dataset.prompt_column != Dataset.prompt_column and not dataset.prompts,
        "--frames-column": dataset.frames_column,
        "--option-column": dataset.option_columns,
        "--matrix": dataset.matrix,
    }
    return [argument for argument, value in given.items() if value]
