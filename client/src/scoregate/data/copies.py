"""Copies of shards with some of their samples: a tar with the same files, or Parquet with the same rows."""

import os
import tarfile
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from scoregate.data.shards import groups, stem
from scoregate.records import GZIP, arrow, arrow_batches, kind, parquet_batches

ROWS = 100  # of a group of rows, at least; `datasets` writes pictures in groups of 100
BATCHES: Mapping[str, Callable[[Path], Iterator[Any]]] = {
    ".parquet": parquet_batches,
    ".arrow": arrow_batches,
}


def copy_of(shard: Path, folder: Path) -> Path:
    """Return the path of a copy of *shard* in *folder*; of an Arrow file it is Parquet."""
    return folder / (f"{stem(shard)}.parquet" if kind(shard) in BATCHES else shard.name)


def copy_samples(shard: Path, numbers: Collection[int], copy: Path) -> None:
    """
    Write the samples of *shard* with these *numbers*, which count from 1, to *copy*.

    The file is whole or absent.  Nothing is read after the last of the samples, so that a shard that is
    damaged behind it is copied, too.

    Raises:
        BadInput: the shard cannot be read.
        OSError: likewise, or the copy cannot be written.
    """
    written = copy.with_name(f"{copy.name}.new")
    try:
        (copy_rows if kind(shard) in BATCHES else copy_files)(shard, numbers, written)
        os.replace(written, copy)
    finally:
        written.unlink(missing_ok=True)


def copy_files(shard: Path, numbers: Collection[int], copy: Path) -> None:
    """Copy samples of a tar: all files of their keys, with their names, their content and their dates."""
    packed = shard.suffix.lower() == GZIP
    with tarfile.open(copy, "w:gz" if packed else "w") as out:
        for number, (_, found) in enumerate(islice(groups(shard), max(numbers)), 1):
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
            if sum(map(len, some)) >= ROWS:
                out.write_table(pyarrow.Table.from_batches(some))
                some = []
            some.append(batch)
        out.write_table(pyarrow.Table.from_batches(some))


def rows_of(shard: Path, numbers: Collection[int]) -> Iterator[Any]:
    """Yield record batches with these rows, up to the last of them."""
    begin, last = 1, max(numbers)
    for batch in BATCHES[kind(shard)](shard):
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
