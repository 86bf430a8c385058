"""Copies of shards: the chosen samples of each format, and nothing that lies behind them."""

import gzip
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.data.datasets import Dataset
from scoregate.runs.filter import copy_of, copy_samples
from tests.support.pictures import png
from tests.support.shards import pairs, tar_of

LONG = "a" * 120  # more than the header of a tar holds


def sample(key):
    return {f"{key}.png": png("red"), f"{key}.txt": key.encode()}


@pytest.fixture
def copied(tmp_path):
    """Copy samples of a shard; return the copy."""

    def copied(shard, *numbers):
        (tmp_path / "new").mkdir()
        copy = copy_of(shard, tmp_path / "new")
        copy_samples(shard, set(numbers), copy)
        assert [copy.name] == [each.name for each in copy.parent.iterdir()]
        return copy

    return copied


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_samples_of_a_tar_keep_their_names(copied, tmp_path, name):
    """Also long ones."""
    shard = tar_of(tmp_path / name, sample("x/1") | sample(LONG) | sample("é"))

    assert [(f"{name}/{key}", key, png("red")) for key in (LONG, "é")] == pairs(Dataset(copied(shard, 2, 3)))


def test_a_link_in_a_sample_is_the_same_link(copied, tmp_path):
    """It is not followed."""
    shard = tar_of(tmp_path / "a.tar", sample("1") | {"1.lnk": "/etc/passwd"})
    with tarfile.open(copied(shard, 1)) as tar:
        assert ("/etc/passwd", True) == (tar.getmember("1.lnk").linkname, tar.getmember("1.lnk").issym())


@pytest.mark.parametrize("packed", [False, True])
def test_a_damage_behind_the_last_sample_is_not_reached(copied, tmp_path, packed):
    """As the samples before it have scores."""
    data = tar_of(tmp_path / "a.tar", sample("1") | sample("2") | sample("3")).read_bytes()
    at = data.index(b"3.png")
    data = data[:at] + b"\xff" + data[at + 1 :]
    shard = tmp_path / ("b.tar.gz" if packed else "b.tar")
    shard.write_bytes(gzip.compress(data) if packed else data)

    assert ["1"] == [prompt for _, prompt, _ in pairs(Dataset(copied(shard, 1)))]


def test_samples_of_arrow_are_copied_to_parquet(copied, tmp_path):
    """From any of its batches."""
    prompts = list("abcdefghi")
    images = [{"bytes": png(), "path": f"{each}.png"} for each in prompts]
    rows = pa.table({"image": images, "prompt": prompts})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows, max_chunksize=2)
    copy = copied(tmp_path / "a.arrow", 1, 6, 7)

    assert ["a", "f", "g"] == [prompt for _, prompt, _ in pairs(Dataset(copy))]
    assert "a.parquet" == copy.name


def test_rows_of_types_that_cannot_be_filtered_are_copied(copied, tmp_path):
    """Polars writes texts as views, which pyarrow slices and does not take."""
    columns = {
        "image": pa.array([png("red")] * 5, pa.binary_view()),
        "prompt": pa.array(list("abcde"), pa.string_view()),
        "of": pa.array([{"a": each} for each in "vwxyz"], pa.struct({"a": pa.string_view()})),
        "tag": pa.array(list("11223")).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    copy = copied(tmp_path / "a.parquet", 1, 3, 4)

    assert ["a", "c", "d"] == [prompt for _, prompt, _ in pairs(Dataset(copy))]
    assert [{"a": "v"}, {"a": "x"}, {"a": "y"}] == pq.read_table(copy)["of"].to_pylist()
    assert ["1", "2", "2"] == pq.read_table(copy)["tag"].to_pylist()


def test_a_copy_that_fails_is_absent(copied, tmp_path):
    """Its shard is not what it was."""
    shard = tar_of(tmp_path / "a.tar", sample("1"))
    shard.write_bytes(shard.read_bytes()[:700])

    with pytest.raises(tarfile.ReadError):
        copied(shard, 1)
    assert not (tmp_path / "new" / "a.tar").exists()
