"""The filter of `scoregate batch`: the names of the rows that pass, and new shards of these samples."""

import os
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from scoregate.data.datasets import Dataset
from scoregate.data.shards import groups
from scoregate.data.tiles import Sheets
from scoregate.errors import InputError, named
from scoregate.expression import ANY, Condition, fault, names_in
from scoregate.records import GZIP, arrow, arrow_batches, kind, opened, parquet_batches, stem
from scoregate.runs.batch_settings import Batch
from scoregate.runs.plan import Line
from scoregate.runs.results import lines_of
from scoregate.text import meant, say, shown

MARK = ".filter"  # the file in a folder of new shards that says what their samples passed


def passes(line: Line, wanted: Condition) -> bool:
    """
    Return True if the row's scores pass; one with an error never does, whatever has the error.

    A row with metrics of its own may lack a score: it passes if any number in its place would.
    """
    scores = {each.name: line["scores"].get(each.name) for each in names_in(wanted.tree)}
    known = {name: ANY if score is None else score for name, score in scores.items()}
    return not line["errors"] and wanted.holds(known) is True


def check_filter(batch: Batch) -> None:
    """Raise `InputError` if the filter is about a metric that is not scored."""
    wanted, metrics = batch.filter, batch.scored
    if wanted and (others := [name for name in names_in(wanted.tree) if name.name not in metrics]):
        near = meant(others[0].name, metrics)
        unscored = fault(others[0].column, f"{others[0].name} is not scored, see {named('metrics')}{near}")
        raise InputError(f"{named('filter', wanted.text)}: {unscored}")


def check_kept_shards(batch: Batch, dataset: Dataset, *, in_folder: bool) -> None:
    """
    Raise `InputError` if the samples that pass could not be copied.

    Args:
        in_folder: whether the results of each shard are a file in a folder.
    """
    wanted, folder = batch.filter, batch.kept_shards
    if not folder:
        return
    if not wanted or not (in_folder or only_shard(dataset)):
        both = f"{named('kept_shards')} needs {named('filter')}"
        raise InputError(f"{both}, and one shard, or several with a folder as OUT")
    if dataset.matrix or dataset.sweeps or isinstance(dataset, Sheets):
        several = f"with {named('matrix')}, {named('sweep')} and {named('grid')}"
        raise InputError(f"{named('kept_shards')}: {several} a sample has several scores")
    if not folder.parent.is_dir() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder}: this cannot be a folder of shards")
    results = (batch.out if in_folder else batch.out.parent).resolve()
    taken = {shard.resolve().parent for shard in dataset.shards or [dataset.path]}
    if folder.resolve() in {*taken, results} or (in_folder and results in taken):
        raise InputError(f"{folder}: the new shards would lie among others: name another folder")
    check_mark(folder, mark_of(wanted, batch.out, folder))


def only_shard(dataset: Dataset) -> Path | None:
    """Return the file of a data set in one shard, which may be a Parquet table; None for any other."""
    table = None if dataset.shards else dataset.table
    files = [table] if table and kind(table) == ".parquet" and table == dataset.path else dataset.shards
    return files[0] if len(files) == 1 else None


def mark_of(wanted: Condition, results: Path, folder: Path) -> str:
    """Return the content of the mark in *folder*."""
    return f"{wanted.text}, scores in {os.path.relpath(results, folder)}\n"


def check_mark(folder: Path, mark: str) -> None:
    """Raise `InputError` if *folder* has the samples of another filter."""
    file = folder / MARK
    if file.exists() and (known := file.read_text("utf-8")) != mark:
        raise InputError(f"{folder} has the samples of {known.strip()}: name another folder")


def write_kept(file: Path, wanted: Condition, lines: Iterable[Line]) -> None:
    """Write the names of the rows that pass to *file*, one in each line, and print how many they are."""
    rows = kept = failed = 0
    written = file.with_name(f"{file.name}.new")
    with written.open("w", encoding="utf-8") as names:
        for line in lines:
            rows += 1
            failed += bool(line["errors"])
            if passes(line, wanted):
                kept += 1
                names.write(f"{shown(line['image'])}\n")
    os.replace(written, file)
    more = f", and {failed} with errors are not" if failed else ""
    say(f"{kept} of {rows} rows are kept by {wanted.text}{more}: {file}")


def write_shards(folder: Path, wanted: Condition, results: Path, shards: Mapping[Path, Path]) -> bool:
    """
    Write new shards of the samples that pass into *folder*; one without such samples has no file.

    A file that is newer than its results is finished, and not written again.  A shard that cannot be copied
    is a line on stderr; return True if there is none.

    Args:
        results: their file or folder.
        shards: the shard of each file of results.
    """
    complete = True
    folder.mkdir(exist_ok=True)
    (folder / MARK).write_text(mark_of(wanted, results, folder), "utf-8")
    for file, shard in shards.items():
        copy = copy_of(shard, folder)
        if copy.exists() and copy.stat().st_mtime_ns >= file.stat().st_mtime_ns:
            continue
        if numbers := {line["row"] for line in lines_of(file) if passes(line, wanted)}:
            try:
                copy_samples(shard, numbers, copy)
            except OSError:
                raise
            except Exception as exc:  # reading a shard may raise anything, and Parquet lacks some types
                say(f"the samples of {shard} cannot be copied: {exc}")
                complete = False
        else:
            copy.unlink(missing_ok=True)
    say(f"the samples that pass are in {folder}")
    return complete


# --- copies of shards: a tar with the same files, or Parquet with the same rows ---


MIN_GROUP_ROWS = 100  # least rows of a group; `datasets` writes pictures in groups of 100
BATCH_READERS: Mapping[str, Callable[[Path], Iterator[Any]]] = {
    ".parquet": parquet_batches,
    ".arrow": arrow_batches,
}


def copy_of(shard: Path, folder: Path) -> Path:
    """Return the path of a copy of *shard* in *folder*; of an Arrow file it is Parquet."""
    return folder / (f"{stem(shard)}.parquet" if kind(shard) in BATCH_READERS else shard.name)


def copy_samples(shard: Path, numbers: Collection[int], copy: Path) -> None:
    """
    Write the samples of *shard* with these *numbers*, which count from 1, to *copy*.

    The file is whole or absent.  Nothing is read after the last of the samples, so that a shard that is
    damaged behind it is copied, too.

    Raises:
        InputError: the shard cannot be read.
        OSError: likewise, or the copy cannot be written.
    """
    written = copy.with_name(f"{copy.name}.new")
    try:
        (copy_rows if kind(shard) in BATCH_READERS else copy_files)(shard, numbers, written)
        os.replace(written, copy)
    finally:
        written.unlink(missing_ok=True)


def copy_files(shard: Path, numbers: Collection[int], copy: Path) -> None:
    """Copy samples of a tar: all files of their keys, with their names, their content and their dates."""
    packed = shard.suffix.lower() == GZIP
    with tarfile.open(copy, "w:gz" if packed else "w") as out:
        for number, (_, found) in enumerate(islice(groups(opened(shard)), max(numbers)), 1):
            for _, _, header, tar in found if number in numbers else ():
                content = tar.extractfile(header) if header.isreg() else None
                if header.isreg():
                    header.type, header.pax_headers = tarfile.REGTYPE, {}  # a sparse file is written whole
                out.addfile(header, content)
                out.members = []  # type: ignore[attr-defined]  # else it keeps every header


def copy_rows(shard: Path, numbers: Collection[int], copy: Path) -> None:
    """Copy rows of Parquet or Arrow, with all columns and the metadata of the schema."""
    pyarrow, writer = arrow()
    rest = rows_of(shard, numbers)
    first = next(rest)
    with copy.open("wb") as opened, writer.ParquetWriter(opened, first.schema) as out:
        some = [first]
        for batch in rest:
            if sum(map(len, some)) >= MIN_GROUP_ROWS:
                out.write_table(pyarrow.Table.from_batches(some))
                some = []
            some.append(batch)
        out.write_table(pyarrow.Table.from_batches(some))


def rows_of(shard: Path, numbers: Collection[int]) -> Iterator[Any]:
    """Yield record batches with these rows, up to the last of them."""
    begin, last = 1, max(numbers)
    for batch in BATCH_READERS[kind(shard)](shard):
        wanted = [number in numbers for number in range(begin, begin + len(batch))]
        for is_wanted, run in groupby(range(len(batch)), wanted.__getitem__):
            places = [*run]
            if is_wanted:
                yield alone(batch[places[0] : places[-1] + 1])
        begin += len(batch)
        if begin > last:
            return


def alone(part: Any) -> Any:
    """Return a copy of a slice; pyarrow can neither filter views, nor write them from a slice of structs."""
    pyarrow, _ = arrow()
    columns = [pyarrow.concat_arrays([column]) for column in part.columns]
    return pyarrow.RecordBatch.from_arrays(columns, schema=part.schema)
