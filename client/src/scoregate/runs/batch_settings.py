"""Settings of `batch` and other runs: the data set and how it is read, the scores, a filter, a cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from scoregate.data.datasets import Dataset
from scoregate.data.folders import captions_alone, image_files, is_generated, left_out
from scoregate.data.matrix import sweep_of
from scoregate.data.rows import existing, prompt_fault
from scoregate.errors import InputError, named
from scoregate.records import check_page, kind
from scoregate.settings import (
    CONCURRENCY,
    GRID_HELP,
    METRIC,
    Column,
    Concurrency,
    MetricNames,
    Orient,
    Setting,
    SettingError,
    Strict,
    generator_paths,
    name_and_path,
    whole,
)
from scoregate.text import LEFT_OUT, meant_file, say_unused, shown

if TYPE_CHECKING:
    from scoregate.expression import Condition

KINDS = (".jsonl", ".parquet", ".csv")  # kinds of files for results
KEPT_FILE = "kept.txt"
GROUP = "a cluster"
PROMPT_COLUMN = Dataset.prompt_column
FOLDER_PROMPTS = ("prompt", "prompts", "prompt_from_name")  # where the prompts of a folder come from
ABOUT_PROMPTS = (*FOLDER_PROMPTS, "prompt_column", "matrix")  # `no_prompt` excludes these


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """Settings of a data set: its place, its columns, and what becomes a row."""

    dataset: Annotated[
        Path,
        Setting(
            "a folder with captions, metadata or shards, a .jsonl, .csv, .tsv, .parquet or .tar, a pattern;"
            " NAME=PATH of a generator",
            positional=True,
            metavar="DATASET",
        ),
    ]
    more: Annotated[
        Sequence[Path],
        Setting(
            "further shards of it, or of the other generators NAME=PATH",
            positional=True,
            nargs="*",
            several=True,
            metavar="MORE",
        ),
    ] = ()
    image_column: Annotated[
        str | None, Column("default image; file_name in a folder's metadata", metavar="NAME")
    ] = None
    prompt_column: Annotated[str, Column("the prompts", metavar="NAME")] = PROMPT_COLUMN
    prompt: Annotated[
        str | None, Setting("of all pictures of a folder, in place of captions", ("-p", "--prompt"))
    ] = None
    prompts: Annotated[
        Path | None,
        Setting(
            "of the pictures of a folder by name, in place of captions: a JSON object, or a table",
            metavar="FILE",
        ),
    ] = None
    prompt_from_name: Annotated[
        str | None,
        Setting(
            "of the pictures of a folder, in their names: the first group, with underscores as spaces",
            metavar="REGEX",
        ),
    ] = None
    no_prompt: Annotated[bool, Setting("read no prompts, for metrics that need none")] = False
    image_part: Annotated[
        str | None, Setting("of several pictures of a sample in a tar: left for KEY.left.png", metavar="PART")
    ] = None
    frames_column: Annotated[
        str | None, Column("lists of frames or views, in place of one picture", metavar="NAME")
    ] = None
    metrics_column: Annotated[
        str | None,
        Column(
            "the metrics of each row, a list or names with commas, of those that are given", metavar="NAME"
        ),
    ] = None
    option_column: Annotated[
        Sequence[str],
        Setting(
            "a column with an option of each row, such as ocr.text=wanted",
            metavar="METRIC.OPTION=COLUMN",
            several=True,
        ),
    ] = ()
    matrix: Annotated[
        bool,
        Setting(
            "score each picture of a row with each of its texts; columns may be lists, or named with commas"
        ),
    ] = False
    sweep: Annotated[
        Sequence[str],
        Setting(
            "score each row with each value of an option, a line of FILE each",
            metavar="METRIC.OPTION=FILE",
            several=True,
        ),
    ] = ()
    grid: Annotated[str | None, Setting(GRID_HELP, metavar="RxC")] = None
    any_path: Annotated[bool, Setting("read pictures outside the data set's folder, too")] = False

    @cached_property
    def named(self) -> dict[str, Path]:
        """The data set of each generator by name, if one is named so; else none, and all paths are of one."""
        texts = [str(each) for each in (self.dataset, *self.more)]
        return generator_paths(texts) if any(name_and_path(text)[0] for text in texts) else {}


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Settings of the scores of a data set."""

    metrics: Annotated[
        Sequence[str],
        MetricNames(f"may be given several times, or with commas (default {METRIC})", column=False),
    ] = ()
    options: Annotated[
        Mapping[str, Mapping[str, Any]], Setting("of the metrics, by metric", option=False)
    ] = field(default_factory=dict)
    orient: Orient = None
    strict: Strict = False
    allow_model_change: Annotated[bool, Setting("go on where other models answer")] = False
    explain: Annotated[bool, Setting("keep what each score is made of")] = False
    concurrency: Concurrency = CONCURRENCY

    @cached_property
    def names(self) -> list[str]:
        """The metrics in the order given, each once."""
        return list(dict.fromkeys(self.metrics)) or [METRIC]

    @property
    def scored(self) -> Sequence[str]:
        """The metrics that are known before the service is."""
        return self.names

    def deciding(self, policy: str, metrics: Sequence[str], options: Mapping[str, Any]) -> Self:
        """
        Return these settings with the metrics of a policy, and their options.

        Raises:
            InputError: options of one of them are given, too.
        """
        if given := [name for name in metrics if self.options.get(name)]:
            raise InputError(f"the options of {given[0]} are those of the policy {policy}: leave them out")
        own = {name: options[name] for name in metrics if options.get(name)}
        every = list(dict.fromkeys([*self.metrics, *metrics]))
        return replace(self, metrics=every, options={**self.options, **own})


def condition(text: str) -> "Condition":
    """Return the filter in a text.  Raises `SettingError`."""
    from scoregate.expression import Condition  # few runs need it

    try:
        return Condition.of(text)
    except ValueError as exc:
        raise SettingError(f"{text!r}: {exc}") from None


def span(text: str) -> tuple[int, int]:
    """Return the least and the greatest number in `N` or `LOW:HIGH`."""
    low, _, high = text.partition(":")
    found = int(low), int(high or low)
    if not 1 <= found[0] <= found[1]:
        raise SettingError("a number from 1, or two such as 1:64")
    return found


def amount(text: str) -> float:
    """Return a finite number from 0."""
    value = float(text)
    if not 0 <= value < 10_000:
        raise SettingError("a number from 0")
    return value


@dataclass(frozen=True, kw_only=True)
class Run(Scoring, DataSource):
    """Settings of scoring a data set."""


@dataclass(frozen=True, kw_only=True)
class Batch(Run):
    """
    Settings of scoring a data set into a file or a folder of results.

    Attributes:
        policy, policy_file: decides about each row; its metrics are scored, by its options.
        filter, kept_shards: of the rows that are kept.
        ray, actors, actor_gpus: of a cluster, each of whose processes loads the models.
        html, html_images: of the page about the results.
    """

    out: Annotated[
        Path,
        Setting(f"the results, {', '.join(KINDS)}; of shards and of generators a folder", ("-o", "--out")),
    ]
    retry: Annotated[bool, Setting("score rows with errors again, also in finished shards")] = False
    policy: Annotated[
        str | None,
        Setting("accept, review or reject each row by this policy, whose metrics are scored", metavar="NAME"),
    ] = None
    policy_file: Annotated[
        Path | None, Setting("a TOML file with the policy, for models of --local", metavar="FILE")
    ] = None
    filter: Annotated[
        "Condition | None",
        Setting(
            f"write the names of the rows that pass to {KEPT_FILE}; also >, <= and <; and, or, not",
            metavar="'METRIC >= X'",
            parse=condition,
        ),
    ] = None
    kept_shards: Annotated[
        Path | None,
        Setting(
            "write new shards of the samples that pass --filter; of several shards OUT is a folder",
            metavar="FOLDER",
        ),
    ] = None
    ray: Annotated[
        str | None,
        Setting("score shards on a Ray cluster: HOST:PORT, auto, or local", metavar="ADDRESS", group=GROUP),
    ] = None
    actors: Annotated[
        tuple[int, int] | None,
        Setting(
            "processes that load the models (default: one for each GPU)",
            metavar="N|LOW:HIGH",
            parse=span,
            group=GROUP,
        ),
    ] = None
    actor_gpus: Annotated[
        float | None,
        Setting("GPUs of each (default: 1, or 0 without any)", metavar="X", parse=amount, group=GROUP),
    ] = None
    html: Annotated[
        Path | None,
        Setting("write a page of pictures, the worst first; of generators, side by side", metavar="FILE"),
    ] = None
    html_images: Annotated[
        int,
        Setting(
            "pictures on that page at most, or prompts of generators (default %(default)s)",
            ("--html-pictures",),
            metavar="N",
            parse=whole,
        ),
    ] = 500

    @property
    def scored(self) -> Sequence[str]:
        """The metrics that are known before the service is, which has those of a policy."""
        return self.metrics if self.policy else self.names


def dataset_of(source: DataSource, metrics: Sequence[str]) -> Dataset:
    """
    Return the data set, whose rows have options of *metrics*.

    Raises:
        InputError: settings have another form, or do not go together.
    """
    if source.frames_column and (source.matrix or source.grid):
        both = f"{named('matrix' if source.matrix else 'grid')} and {named('frames_column')}"
        raise InputError(f"{both}: give one of them")
    others = source.matrix or source.prompt_column != PROMPT_COLUMN
    prompts = {name: getattr(source, name) for name in FOLDER_PROMPTS}
    if source.no_prompt and (others or any(value is not None for value in prompts.values())):
        excluded = ", ".join(map(named, ABOUT_PROMPTS))
        raise InputError(f"{named('no_prompt')} reads no prompts: leave out {excluded}")
    check_prompts(source.dataset, prompts)
    renamed = dict(map(renaming, source.option_column))
    sweeps = [sweep_of(text) for text in source.sweep]
    for name in (*renamed, *(sweep.name for sweep in sweeps)):
        if name.rpartition(".")[0] not in metrics:
            raise InputError(f"{shown(name)}: this metric is not scored, see {named('metrics')}")
    found = Dataset(
        source.dataset,
        source.image_column,
        source.prompt_column,
        source.any_path,
        source.frames_column,
        renamed,
        source.matrix,
        sweeps,
        metrics,
        prompt=source.prompt,
        prompts=source.prompts,
        prompt_from_name=source.prompt_from_name,
        more=source.more,
        no_prompt=source.no_prompt,
        image_part=source.image_part,
        metrics_column=source.metrics_column,
    )
    if not source.grid:
        return found
    from scoregate.data.tiles import Sheets, grid_of

    return Sheets(**vars(found), grid=grid_of(source.grid))


def renaming(text: str) -> tuple[str, str]:
    """Return the option and the column of a text `METRIC.OPTION=COLUMN`.  Raises `InputError`."""
    name, _, column = text.partition("=")
    if not column or not all(name.rpartition(".")):
        raise InputError(f"{named('option_column', shown(text))}: it has the form METRIC.OPTION=COLUMN")
    return name, column


def check_prompts(folder: Path, given: Mapping[str, Any]) -> None:
    """Raise `InputError` if *folder* has prompts of its own, or one of the settings *given* is not valid."""
    names = [name for name, value in given.items() if value is not None]
    if names[1:]:
        raise InputError(f"{' and '.join(map(named, names))}: give one of them")
    if names and has_prompts(folder):
        raise InputError(
            f"{named(names[0])} is for a folder of pictures alone: {folder} has prompts of its own"
        )
    if (prompt := given["prompt"]) is not None and (fault := prompt_fault(prompt)):
        raise InputError(f"{named('prompt')} {fault}")
    try:
        re.compile(given["prompt_from_name"] or "")
    except re.error as exc:
        raise InputError(f"{named('prompt_from_name')}: no regular expression ({exc})") from None


def has_prompts(path: Path) -> bool:
    """Return True for a data set with prompts of its own, and False for a folder of pictures alone."""
    dataset = Dataset(path)
    return bool(dataset.shards) or dataset.table is not None or is_generated(path)


def check_kind(file: Path) -> None:
    """Raise `InputError` for a file of another kind than results have."""
    if file.suffix.lower() not in KINDS:
        raise InputError(f"{file}: the name of the results must end in {', '.join(KINDS)}")


def check_output(dataset: Dataset, out: Path, page: Path | None, *, in_folder: bool = False) -> None:
    """
    Raise `InputError` now for faults that would otherwise show when models are loaded, or all is scored.

    Args:
        in_folder: *out* is a folder with a file of results for each shard.
    """
    files = dataset.shards or list(filter(None, [dataset.table]))
    if not files and (given := about_columns(dataset)):
        raise InputError(f"{named(given[0])}: this folder has no table, but a text file for each picture")
    files += filter(None, [dataset.prompts])
    read = {file.resolve() for file in files}
    for path, what in ((out, "results"), (page, "page")):
        if path and path.resolve() in read:
            raise InputError(f"{path}: the {what} would overwrite the data set")
        if path and not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}{meant_file(path.parent)}")
    if page and page.resolve() == out.resolve():
        raise InputError(f"{page}: the page would overwrite the results")
    if page:
        check_page(page)
    if dataset.image_part and {kind(shard) for shard in dataset.shards} != {".tar"}:
        raise InputError(f"{named('image_part')} is for the pictures in tar files")
    if not in_folder:
        check_kind(out)
    dataset.check()
    if not (files or dataset.no_prompt or dataset.prompt_from_name) and dataset.prompt is None:
        if not is_generated(dataset.path):
            check_captions(dataset.path)
        if alone := captions_alone(dataset.path):
            say_unused("text files without a picture of the same name", alone)
    if dataset.path.is_dir() and not (dataset.shards or dataset.table or is_generated(dataset.path)):
        say_unused(LEFT_OUT, left_out(dataset.path))


def check_captions(folder: Path) -> None:
    """Raise `InputError` for a folder of pictures of which none has a caption."""
    images = [*image_files(folder)]
    if images and not any(existing(image.with_suffix(".txt")).exists() for image in images):
        by = f"{named('prompt', 'TEXT')}, {named('prompts', 'FILE')} or {named('prompt_from_name', 'REGEX')}"
        raise InputError(
            f"{folder}: no picture has a caption, a text file of its name: give the prompts by {by},"
            f" or {named('no_prompt')}"
        )


def about_columns(dataset: Dataset) -> list[str]:
    """Return the arguments that need a table."""
    given = {
        "image_column": dataset.image_column and not dataset.prompts,
        "prompt_column": dataset.prompt_column != Dataset.prompt_column and not dataset.prompts,
        "frames_column": dataset.frames_column,
        "option_column": dataset.option_columns,
        "matrix": dataset.matrix,
    }
    return [argument for argument, value in given.items() if value]
