"""The arguments that name a data set, and say how it is read."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scoregate.cli.arguments import UsageFault, add_concurrency, metrics_of
from scoregate.cli.manifest import NAMES
from scoregate.cli.tiles import Sheets, add_grid, grid_of
from scoregate.data.columns import sweep_of
from scoregate.data.datasets import Dataset, captions_alone, is_generated
from scoregate.data.rows import prompt_fault
from scoregate.text import shown


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments for the data set, its columns and the concurrency."""
    add = parser.add_argument
    add(
        "dataset",
        type=Path,
        metavar="DATASET",
        help="a folder with captions, metadata or shards, a .jsonl, .csv, .parquet or .tar, or their pattern",
    )
    add("--image-column", metavar="NAME", help="default image; file_name in a folder's metadata")
    add("--prompt-column", metavar="NAME", default="prompt", help="default %(default)s")
    add("-p", "--prompt", help="of all pictures of a folder, in place of captions")
    add("--no-prompt", action="store_true", help="read no prompts, for metrics that need none")
    add("--frames-column", metavar="NAME", help="lists of frames or views, in place of one picture")
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
    return dataset_of(arguments.dataset, metrics_of(arguments), **given_in(arguments))


def dataset_of(
    path: Path,
    metrics: Sequence[str],
    *,
    image_column: str | None = None,
    prompt_column: str = "prompt",
    frames_column: str | None = None,
    option_column: Sequence[str] = (),
    matrix: bool = False,
    sweep: Sequence[str] = (),
    any_path: bool = False,
    prompt: str | None = None,
    no_prompt: bool = False,
    grid: str | None = None,
) -> Dataset:
    """
    Return a data set.

    Args:
        option_column, sweep, grid: in the form of their arguments.

    Raises:
        UsageFault: arguments have another form, or do not go together.
    """
    if matrix and frames_column:
        raise UsageFault("--matrix and --frames-column: give one of them")
    if grid and frames_column:
        raise UsageFault("--grid and --frames-column: give one of them")
    if no_prompt and (prompt is not None or matrix or prompt_column != Dataset.prompt_column):
        raise UsageFault("--no-prompt reads no prompts: leave out --prompt, --prompt-column and --matrix")
    if prompt is not None:
        check_prompt(path, prompt)
    renamed = dict[str, str]()
    for text in option_column:
        name, _, column = text.partition("=")
        if not column or not all(name.partition(".")):
            raise UsageFault(f"--option-column {shown(text)}: it has the form METRIC.OPTION=COLUMN")
        renamed[name] = column
    sweeps = [sweep_of(text) for text in sweep]
    if wrong := [
        each for each in (*renamed, *(s.name for s in sweeps)) if each.partition(".")[0] not in metrics
    ]:
        raise UsageFault(f"{shown(wrong[0])}: this metric is not scored, see --metric")
    found = Dataset(
        path,
        image_column,
        prompt_column,
        any_path,
        frames_column,
        renamed,
        matrix,
        sweeps,
        metrics,
        prompt=prompt,
        prompted=not no_prompt,
    )
    return Sheets(**vars(found), grid=grid_of(grid)) if grid else found


def check_prompt(folder: Path, prompt: str) -> None:
    """Raise `UsageFault` if *folder* has prompts of its own, or the service would reject this one."""
    if Dataset(folder).shards or Dataset(folder).table is not None or is_generated(folder):
        raise UsageFault(f"--prompt is for a folder of pictures alone: {folder} has prompts of its own")
    if fault := prompt_fault(prompt):
        raise UsageFault(f"--prompt {fault}")


def check(dataset: Dataset, out: Path, page: Path | None) -> None:
    """Raise `UsageFault` for what would otherwise be found when all is scored."""
    files = dataset.shards or list(filter(None, [dataset.table]))
    if not files and (given := about_columns(dataset)):
        raise UsageFault(f"{given[0]}: this folder has no table, but a text file for each picture")
    read = {file.resolve() for file in files}
    for path, what in ((out, "results"), (page, "page")):
        if path and path.resolve() in read:
            raise UsageFault(f"{path}: the {what} would overwrite the data set")
        if path and not path.parent.is_dir():
            raise UsageFault(f"{path}: there is no folder {path.parent}")
    if page and page.resolve() == out.resolve():
        raise UsageFault(f"{page}: the page would overwrite the results")
    if not files and dataset.prompted and dataset.prompt is None and (alone := captions_alone(dataset.path)):
        named = ", ".join(alone[:5]) + ", …" * (len(alone) > 5)
        print(
            shown(f"text files without a picture of the same name: {len(alone)} ({named})"), file=sys.stderr
        )


def about_columns(dataset: Dataset) -> list[str]:
    """Return the arguments that need a table."""
    given = {
        "--image-column": dataset.image_column,
        "--prompt-column": dataset.prompt_column != Dataset.prompt_column,
        "--frames-column": dataset.frames_column,
        "--option-column": dataset.option_columns,
        "--matrix": dataset.matrix,
    }
    return [argument for argument, value in given.items() if value]
