"""Parquet and Arrow: the rows and bytes of a batch are bounded before anything is unpacked."""

import random
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.columnar import MemoryLimits
from scoregate.data.datasets import Dataset
from scoregate.errors import InputError
from scoregate.records import arrow_batches, of_batches, parquet_batches
from tests.support.pictures import png
from tests.support.shards import pairs

MB = 2**20
SAME = b"\0" * MB
ROWS = 40
FEW = MemoryLimits(batch=2 * MB, unpacked=8 * MB)


def in_parquet(path, column, **how):
    rows = pa.table({"image": column, "prompt": pa.array(["x"] * len(column))})
    pq.write_table(rows, path, compression="zstd", data_page_size=2**30, **how)
    return path


def in_arrow(path, column, *, new=pa.ipc.new_stream, compression=None):
    rows = pa.table({"image": column, "prompt": pa.array(["x"] * len(column))})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, new(file, rows.schema, options=options) as out:
        out.write_table(rows)
    return path


WHOLE = {"use_dictionary": True, "dictionary_pagesize_limit": 2**30}
PREFIXES = {"use_dictionary": False, "column_encoding": {"image": "DELTA_BYTE_ARRAY"}}
STRUCT = pa.StructArray.from_arrays([pa.array([SAME] * ROWS), pa.array(["x"] * ROWS)], ["bytes", "path"])
REPEATED = {
    "a value of a dictionary": (pa.array([SAME] * ROWS), WHOLE),
    "a value of a dictionary in a struct": (STRUCT, WHOLE),
    "the first bytes of a value": (pa.array([SAME] * ROWS), PREFIXES),
    "nulls of a large width": (pa.array([None] * ROWS, pa.binary(MB)), {}),
}


@pytest.mark.parametrize(("column", "how"), REPEATED.values(), ids=REPEATED)
def test_a_batch_of_parquet_is_bounded_where_rows_share_a_value(tmp_path, column, how):
    """Its file has a few kilobytes, and its rows together 40 MB."""
    path = in_parquet(tmp_path / "a.parquet", column, **how)
    batches = [len(batch) for batch in parquet_batches(path, FEW)]

    assert path.stat().st_size < 100_000
    assert ROWS == sum(batches)
    assert max(batches) <= 2


def test_small_cells_are_decoded_together(tmp_path):
    """Also from a dictionary."""
    path = in_parquet(tmp_path / "a.parquet", pa.array([b"x" * 100, b"y"] * 100))

    assert [64, 64, 64, 8] == [len(batch) for batch in parquet_batches(path, FEW)]


def test_packed_bytes_of_parquet_are_not_unpacked(tmp_path):
    """The message has both sizes."""
    path = in_parquet(tmp_path / "a.parquet", pa.array([SAME] * ROWS), use_dictionary=False)

    with pytest.raises(InputError, match=r"bytes of it would take 4\d+ in memory"):
        list(parquet_batches(path, FEW))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["dictionary", "plain"])
def test_packed_bytes_of_arrow_are_not_unpacked(tmp_path, packed, kind):
    """Those of a batch, or of a dictionary; without packing the file has as many."""
    column = pa.array([bytes([each]) * MB for each in range(ROWS)])
    column = column.dictionary_encode() if kind == "dictionary" else column
    path = in_arrow(tmp_path / "a.arrow", column, compression="zstd" if packed else None)

    if packed:
        with pytest.raises(InputError, match=r"bytes of it would take 4\d+ in memory"):
            list(arrow_batches(path, FEW))
    else:
        assert ROWS == sum(map(len, arrow_batches(path, FEW)))


@pytest.mark.parametrize(
    ("write", "batches"), [(in_parquet, parquet_batches), (in_arrow, arrow_batches)], ids=["Parquet", "Arrow"]
)
def test_pictures_are_read_however_many_bytes_they_have(tmp_path, write, batches):
    """They hardly get smaller by packing."""
    drawn = random.Random(0)
    pictures = [png() + drawn.randbytes(MB) for _ in range(20)]
    path = write(tmp_path / "a", pa.array(pictures))

    assert pictures == [row.values["image"] for row in of_batches(batches(path, FEW))]


def test_rows_of_arrow_that_share_a_value_are_expanded_one_by_one(tmp_path):
    """At no time are all of them in memory."""
    path = in_arrow(tmp_path / "a.arrow", pa.array([SAME] * ROWS).dictionary_encode())
    tracemalloc.start()
    try:
        rows = of_batches(arrow_batches(path, FEW))
        assert {(MB, "")} == {(len(row.values["image"]), row.fault) for row in rows}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 10 * MB


@pytest.mark.parametrize("new", [pa.ipc.new_stream, pa.ipc.new_file], ids=["a stream", "a file"])
def test_both_formats_of_arrow_are_read(tmp_path, new):
    """As `datasets` saves them, and as Feather."""
    path = in_arrow(tmp_path / "a.arrow", pa.array([png("red"), png("lime")]), new=new, compression="lz4")

    assert [png("red"), png("lime")] == [picture for _, _, picture in pairs(Dataset(path))]


def test_offsets_of_arrow_that_lead_out_of_the_data_are_a_damage(tmp_path):
    """pyarrow itself would read what lies behind it in memory."""
    column = pa.array([b"a" * 77, b"b" * 78])
    path = in_arrow(tmp_path / "a.arrow", column)
    ends = (155).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace((77).to_bytes(4, "little") + ends, ends + b"\xff\xff\xff\x7e"))
    [row] = Dataset(path)

    assert row.fault.startswith("a.arrow, row 1: the shard cannot be read from row 1 on: ")


@pytest.mark.parametrize("place", ["whole", "in a struct"])
@pytest.mark.parametrize(
    ("write", "batches"), [(in_parquet, parquet_batches), (in_arrow, arrow_batches)], ids=["Parquet", "Arrow"]
)
def test_a_cell_that_is_too_large_is_an_error_of_its_row(tmp_path, write, batches, place):
    """The rows around it are read."""
    cells = [png("red"), b"x" * 1001, png("lime")]
    column = pa.array(cells if place == "whole" else [{"bytes": cell} for cell in cells])
    first, bad, last = of_batches(batches(write(tmp_path / "a", column)), 1000)

    assert ("", "") == (first.fault, last.fault)
    assert (2, "column image has more than 1000 bytes") == (bad.number, bad.fault)


@pytest.mark.parametrize("cut", [1, 5, 9, 100, 300])
def test_a_stream_of_arrow_that_is_cut_is_read_up_to_there(tmp_path, cut):
    """Whatever the part that is missing."""
    path = in_arrow(tmp_path / "a.arrow", pa.array([png("red")]))
    path.write_bytes(path.read_bytes()[:cut])
    [row] = Dataset(path)

    assert "the shard cannot be read" in row.fault
