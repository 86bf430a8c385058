"""
Data sets: folders of captions, metadata or GenEval, tables, shards.

* **A folder**: each picture and video has a text file of the same name (`cat.png`, `cat.txt`); or its
  prompt is in the file `--prompts`; or in its name, by the regular expression `--prompt-from-name`; or all
  have the prompt `--prompt`, or none by `--no-prompt`. Subfolders are included; hidden files and folders,
  such as `.ipynb_checkpoints`, and `__MACOSX` are not. A picture is recognised by its suffix or its
  content; other files, except texts, are counted in a line on stderr.
* **A folder with metadata**, Hugging Face's `imagefolder`: a table with the column `file_name`, and the
  prompt.
* **A folder of GenEval**: `00000/metadata.jsonl`, `00000/samples/0000.png`, …: the metadata has the prompt
  and the options of `geneval`.
* **A table**: the columns `image`, a path relative to the file or a picture in base64, and `prompt`. In
  Parquet, `image` may also be bytes, or Hugging Face's struct of `bytes` and `path`. CSV has commas,
  semicolons or tabs.
* **A tar of WebDataset**: neighbouring files with the same key are a row: a picture or video, and its
  prompt in a `.txt`, or in a `.json` as `prompt` or `caption`. Other fields of the JSON are columns. Of
  `KEY.left.png` and `KEY.right.png`, `--image-part left` takes the first.
* **Shards**: a folder of tars or Parquet, or of Arrow by `datasets.save_to_disk`, one with a folder `data`
  of these, a pattern in quotes, `"shard-{000..999}.tar"` or `"shards/*.tar"`, or several of all these:
  their rows one after the other. Of a `DatasetDict` name a split.
* **Limits**: a cell or a file of a shard of more than 64 MiB is an error of its row. A row group of
  Parquet or a batch of Arrow that takes more than 256 MiB and 16 times its bytes in the file ends its shard
  with an error, as does a file in a tar with more than 64 KiB of attributes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

from scoregate.data.folders import (
    METADATA,
    captioned,
    generated,
    image_files,
    is_generated,
    is_image,
    prompted,
    samples,
    titled,
)
from scoregate.data.matrix import Sweep, matrix, swept, taken
from scoregate.data.rows import (
    RELATED_COLUMNS,
    Row,
    image_of,
    in_json,
    is_column,
    names_in,
    options_in,
    prompt_fault,
    related_in,
)
from scoregate.data.shards import samples_of, shards_of
from scoregate.errors import BadImageError, InputError, NoColumnError, named
from scoregate.items import Item, names_of
from scoregate.records import TABLES_OF_TEXT, Record, count, kind, records
from scoregate.text import meant_file

NEIGHBOURS = "; a picture and its text are neighbours in a tar, as `tar --sort=name` writes them"
ROWS_SEARCHED_FOR_COLUMN = 100  # rows in which a column has to be seen


@dataclass(frozen=True)
class Dataset:
    """
    The rows of a folder, a file or shards, read again for each iteration.

    Attributes:
        path: also a pattern of shards.
        more: further shards of the data set.
        image_column: `file_name` in metadata, else `image`; for a matrix several, with commas.
        any_path: whether pictures outside its folder are read.
        frames_column: has the list of frames of each row.
        option_columns: columns of options by `METRIC.OPTION`, for columns of other names.
        matrix: whether a row has several pictures and texts, each to be scored with each.
        sweeps: options whose values are all scored.
        metrics: those whose options are read from the columns.
        asking: those of them whose question set the column `question_set` pins.
        texts: options that are texts, by `METRIC.OPTION`, though a cell of CSV may be `2024`.
        prompt: of all pictures of a folder, in place of captions.
        prompts: the file with the prompts of a folder by picture, in place of captions.
        no_prompt: whether neither captions nor the column of prompts are read, for metrics that need none.
        metrics_column: names the metrics of each row, in place of all.
        image_part: of several pictures of a sample in a tar, `left` for `KEY.left.png`.
        prompt_from_name: the regular expression of the prompt in a picture's name, in a folder.
        part: whether *path* is one shard of a data set whose columns are checked, or the folder of `row`.

    Raises:
        InputError: nothing can be read from *path*, or none of its first rows has the columns.
    """

    path: Path
    image_column: str | None = None
    prompt_column: str = "prompt"
    any_path: bool = False
    frames_column: str | None = None
    option_columns: Mapping[str, str] = field(default_factory=dict)
    matrix: bool = False
    sweeps: Sequence[Sweep] = ()
    metrics: Sequence[str] = ()
    asking: Sequence[str] = ()
    texts: Collection[str] = ()
    prompt: str | None = None
    prompts: Path | None = None
    no_prompt: bool = False
    metrics_column: str | None = None
    image_part: str | None = None
    prompt_from_name: str | None = None
    part: bool = False
    more: Sequence[Path] = ()

    def __iter__(self) -> Iterator[Row]:
        if self.shards:
            each = self.sampled()
            rows: Iterator[Row] = (
                row for shard, record in each for row in self.rows(record, shard, in_csv=False)
            )
        else:
            rows = self.below(self.path) if self.table is None else self.listed(self.table)
        if not (self.matrix or self.sweeps or len(self.shards) > 1):
            return rows
        return renumbered(swept(rows, self.sweeps))

    def read_with(self, asking: Sequence[str], texts: Collection[str]) -> "Dataset":
        """Return this data set with other *asking* and *texts*; its shards are not listed again."""
        again = replace(self, asking=asking, texts=texts)
        again.__dict__["shards"] = self.shards
        return again

    @cached_property
    def shards(self) -> list[Path]:
        """The files of a data set in shards; none of another one."""
        if self.part:
            return [self.path]
        has_table = (
            not self.more and self.path.is_dir() and any((self.path / name).is_file() for name in METADATA)
        )
        found = [] if has_table else shards_of(self.path, self.more)
        return [] if self.path.is_dir() and found and any(image_files(self.path)) else found

    @property
    def table(self) -> Path | None:
        """
        The file that lists the pictures; None for shards, and a folder of captions or of GenEval.

        Raises `InputError` if there is none, or it is a picture itself.
        """
        if self.shards:
            return None
        if not self.path.exists():
            raise InputError(f"{self.path}: no such file or folder{meant_file(self.path)}")
        if not self.path.is_dir():
            if is_image(self.path):
                raise InputError(f"{self.path}: is a picture: name its folder, or use `scoregate score`")
            return self.path
        return next((file for name in METADATA if (file := self.path / name).is_file()), None)

    @property
    def image(self) -> str:
        """The column of pictures."""
        return self.image_column or ("file_name" if self.path.is_dir() and not self.shards else "image")

    def count(self) -> int | None:
        """Return the number of rows; None for shards, which would have to be read for it."""
        if self.shards:
            return None
        if self.matrix:
            return sum(1 for _ in self)
        if self.table:
            rows = count(self.table)
        elif self.prompts:
            rows = sum(1 for _ in self.below(self.path))
        else:
            rows = sum(1 for _ in (samples if is_generated(self.path) else image_files)(self.path))
        for sweep in self.sweeps:
            rows *= len(sweep.values)
        return rows

    def below(self, folder: Path) -> Iterator[Row]:
        """Return the rows of a folder without a table."""
        if is_generated(folder):
            return generated(folder, self.metrics, self.any_path)
        if self.prompts:
            columns = self.image_column or "image", self.prompt_column
            return prompted(folder, self.prompts, *columns, self.any_path)
        if self.prompt_from_name is not None:
            return titled(folder, self.prompt_from_name, self.any_path)
        return captioned(folder, self.any_path, self.prompt, self.no_prompt)

    def listed(self, table: Path) -> Iterator[Row]:
        """Yield the rows of a table."""
        self.check_columns(records(table))
        in_csv = kind(table) in TABLES_OF_TEXT
        for record in records(table):
            each = replace(record, values=self.parsed(record.values)) if in_csv else record
            yield from self.rows(each, table, in_csv)

    def parsed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the cells of a CSV row; a prompt in JSON is a text, but for the lists of a matrix."""
        plain = {self.option_columns.get(name, name) for name in self.texts}
        plain |= set() if self.matrix else {self.prompt_column}
        return in_json(values, plain, {*self.image.split(","), *RELATED_COLUMNS, self.frames_column or ""})

    def sampled(self) -> Iterator[tuple[Path, Record]]:
        """Yield shards with their samples, whose columns are checked unless the first one has all of them."""
        part = self.image_part or ""
        every = ((shard, record) for shard in self.shards for record in samples_of(shard, part))
        first = next(every, None)
        if not self.part and not (first and self.has_columns(first[1])):
            self.check_samples()
        yield from chain([first] if first else [], every)

    def rows(self, record: Record, file: Path, in_csv: bool) -> Iterator[Row]:
        """Yield a record as the rows that are scored."""
        images, prompts = self.image.split(","), self.prompt_column.split(",")
        shard = file.name if self.shards else ""
        for each in matrix(record, images, prompts) if self.matrix else [record]:
            yield self.row(each, file.parent, shard, in_csv)

    def check(self) -> None:
        """Read the first sample or row.  Raises `InputError` if there is none, or a column is missing."""
        next(self.sampled() if self.shards else iter(self), None)

    def check_samples(self) -> None:
        """Check the columns of shards, as `check_columns`."""
        self.check_columns(
            chain.from_iterable(samples_of(each, self.image_part or "") for each in self.shards)
        )

    def wanted(self) -> list[tuple[str, str, str]]:
        """Return the columns that a table has to have, each with its setting, and what precedes it there."""
        images = (
            (self.frames_column, "frames_column", "")
            if self.frames_column
            else (self.image, "image_column", "")
        )
        prompts = [] if self.no_prompt else [(self.prompt_column, "prompt_column", "")]
        metrics = [(self.metrics_column, "metrics_column", "")] if self.metrics_column else []
        options = [(column, "option_column", f"{name}=") for name, column in self.option_columns.items()]
        return [images, *prompts, *metrics, *options]

    def has_columns(self, record: Record) -> bool:
        """Return True if a record has the columns; a matrix is always checked by more than one."""
        return not self.matrix and all(column in record.values for column, _, _ in self.wanted())

    def check_columns(self, rows: Iterable[Record]) -> None:
        """Raise `InputError` if a column is missing: one line instead of an error for each row."""
        table = self.table or self.path
        first = [*islice(rows, ROWS_SEARCHED_FOR_COLUMN)]
        seen = [list(record.values) for record in first]
        why = next((f": row {each.number}: {each.fault}" for each in first if each.fault), "")
        names = list(dict.fromkeys(name for keys in seen for name in keys))
        if seen and not names and self.shards:
            return  # each of them has an error
        if not names:
            raise InputError(
                f"{table}: no rows" if not seen else f"{table}: none of the first rows can be read{why}"
            )
        read = [*self.image.split(","), *self.prompt_column.split(",")]
        if self.matrix and (fault := taken([name for name in names if name not in read])):
            raise InputError(f"{named('matrix')} {fault}")
        for given, setting, before in self.wanted():
            for column in given.split(",") if self.matrix else [given]:
                if column not in names:
                    apart = NEIGHBOURS if self.shards and names == ["image"] else ""
                    others = [name for name, _, _ in self.wanted() if name != column]
                    raise NoColumnError(table, column, names, setting, others, apart, before)

    def row(self, record: Record, folder: Path, shard: str, in_csv: bool) -> Row:
        """Return a record, of a *shard* or a table, as a row; pictures are named relative to *folder*."""
        number, values = record.number, record.values
        place = record.name or (f"{shard}, row {number}" if shard else f"row {number}")
        shard = "" if record.name else shard  # the name of a sample in a tar has it
        if record.fault:
            return Row(number, record.name, fault=f"{place}: {record.fault}", shard=shard)
        image, prompt = ("image", "prompt") if self.matrix else (self.image, self.prompt_column)
        text, faults = None if self.no_prompt else values.get(prompt), []
        columns = {
            column: value
            for column, value in values.items()
            if column not in (image, prompt, self.frames_column) and is_column(value)
        }
        name, frames, options = None, list[Path | bytes](), dict[str, dict[str, Any]]()
        try:
            name, frames = self.shown(values, image, folder)
        except ValueError as exc:
            faults.append(f"column {self.frames_column or image} {exc}")
        if not self.no_prompt and (why := prompt_fault(text)):
            faults.append(f"column {prompt} {why}")
        try:
            options = options_in(
                values, self.metrics, self.asking, self.option_columns, in_csv=in_csv, texts=self.texts
            )
        except ValueError as exc:
            faults.append(str(exc))
        related = related_in(values)
        metrics: Sequence[str] = ()
        if self.metrics_column:
            metrics = names_in(values.get(self.metrics_column))
            if unknown := [name for name in metrics if name not in self.metrics]:
                faults.append(f"column {self.metrics_column} has {unknown[0]!r}, which is not scored")
        return Row(
            number,
            name,
            text if isinstance(text, str) else None,
            frames[0] if frames else b"",
            columns,
            f"{place}, {'; '.join(faults)}" if faults else "",
            related,
            folder,
            self.any_path,
            frames if self.frames_column else (),
            options,
            shard,
            metrics,
        )

    def shown(self, values: Mapping[str, Any], image: str, folder: Path) -> tuple[str, list[Path | bytes]]:
        """Return the name of a row's picture or frames, and these.  Raises `ValueError`."""
        if self.frames_column is None:
            name, file = image_of(values.get(image), folder)
            return name, [file]
        cell = values.get(self.frames_column)
        found = [image_of(each, folder) for each in (cell if isinstance(cell, list) else [cell])]
        if not found:
            raise ValueError("is empty")
        return ", ".join(name for name, _ in found), [file for _, file in found]


def renumbered(rows: Iterable[Row]) -> Iterator[Row]:
    """Return rows numbered by their position, since several have one row of the table."""
    return (replace(row, number=number) for number, row in enumerate(rows, 1))


def read_dataset(
    source: str | PathLike[str],
    metrics: Sequence[str] | str = (),
    *,
    prompt: str | None = None,
    prompts: str | PathLike[str] | None = None,
    image_column: str | None = None,
    prompt_column: str = "prompt",
    frames_column: str | None = None,
    metrics_column: str | None = None,
    no_prompt: bool = False,
    image_part: str | None = None,
    prompt_from_name: str | None = None,
    uses: Sequence[str] | str = (),
) -> Iterator[Item]:
    """
    Yield the rows of a data set, for `score_many`, one by one.

    The id of an item is the name of its picture, in a tar the shard and the key.  A row that cannot be read
    is an item whose result is the error `bad_image` with the reason.

    Args:
        source: a folder, a file or a pattern of shards, as `scoregate batch` takes them.
        metrics: those whose options are read from the columns.
        prompt: of all pictures of a folder, in place of captions.
        prompts: a file with the prompts of a folder by picture, in place of captions.
        frames_column: has the list of frames of each row, in place of one picture.
        metrics_column: names the metrics of each row, of *metrics*.
        no_prompt: read no prompts, for metrics that need none.
        image_part: of several pictures of a sample in a tar, `left` for `KEY.left.png`.
        prompt_from_name: the regular expression of the prompt in the name of a folder's picture.
        uses: the columns of related pictures that the metrics use, of `source` and `references`.

    Raises:
        InputError: nothing can be read from *source*, none of its first rows has the columns, or *uses* has
            another name.
        OSError: a table cannot be read.
    """
    related = names_of(uses)
    if wrong := [name for name in related if name not in RELATED_COLUMNS]:
        raise InputError(f"uses: {wrong[0]!r}: choose from {', '.join(RELATED_COLUMNS)}")
    by_name = None if prompts is None else Path(prompts)
    dataset = Dataset(
        Path(source),
        image_column,
        prompt_column,
        frames_column=frames_column,
        metrics=names_of(metrics),
        prompt=prompt,
        prompts=by_name,
        no_prompt=no_prompt,
        metrics_column=metrics_column,
        image_part=image_part,
        prompt_from_name=prompt_from_name,
    )
    for row in dataset:
        try:
            item, _ = row.item(related, None, None)
        except ValueError as exc:
            error: Any = BadImageError(f"cannot read the file: {exc}")
            item = Item(prompt=row.prompt, image=error, options=row.options, metrics=row.metrics)
        yield replace(item, id=row.image or row.place)
