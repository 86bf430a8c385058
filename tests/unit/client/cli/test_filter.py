"""`scoregate batch --filter`: the names of the rows that pass, and new shards of these samples."""

import os
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.data.datasets import Dataset
from scoregate.runs.batch_settings import condition
from scoregate.runs.filter import passes
from tests.support.pictures import png
from tests.support.shards import pairs, tar_of
from tests.unit.client.cli.served import Numbered, Service, metric

TO_FOLDER = ("batch", "s-{0..2}.tar", "-o", "out", "-m", "vqascore")
KEPT = ("--filter", "vqascore >= 0.5", "--kept-shards", "kept")


@pytest.fixture
def service():
    """A service of two metrics."""
    return Service("clip@1", metrics={"vqascore": metric(), "clipscore": metric()})


def test_a_filter_writes_the_names_of_the_rows_that_pass(command, service, shards):
    """For a folder and for a file; rows with errors are counted, and not kept."""
    passing = [f"s-{shard}.tar/{key}" for shard in range(3) for key in ("0001", "0002")]
    passing.remove("s-1.tar/0002")
    wanted = ("--filter", "vqascore >= 0.5")
    _, _, err = command(service, *TO_FOLDER, *wanted)
    command(service, "batch", "s-{0..2}.tar", "-o", "out.jsonl", "-m", "vqascore", *wanted)

    assert "5 of 6 rows are kept by vqascore >= 0.5, and 1 with errors are not: out/kept.txt\n" in err
    for file in ("out/kept.txt", "out.jsonl.kept.txt"):
        assert passing == Path(file).read_text("utf-8").splitlines()


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ("vqascore >= 0.5", 40),
        ("vqascore>0.5", 0),
        ("vqascore <= 5e-1", 40),
        ("vqascore < 0.5", 0),
        ("vqascore > -1", 40),
        ("vqascore == 0.5", 40),
        ("0 < vqascore < 0.5 or vqascore / 2 > 1", 0),
        ("not vqascore < 0.5 and max(vqascore, 0.2) <= 0.5", 40),
    ],
)
def test_a_filter_is_a_condition_of_scores(command, service, wanted, kept):
    """With finished results, too."""
    for _ in range(2):
        command(service, "batch", "rows.jsonl", "-o", "out.jsonl", "-m", "vqascore", "--filter", wanted)

        assert kept == len(Path("out.jsonl.kept.txt").read_text("utf-8").splitlines())


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ("a >= 0.5", True),
        ("a >= 0.5 or b >= 0.5", True),
        ("b >= 0.5", False),
        ("a >= 0.5 and b >= 0.5", False),
    ],
)
def test_a_row_without_a_score_passes_if_any_number_in_its_place_would(wanted, kept):
    """As rows with metrics of their own have it; a row with an error passes never."""
    wanted = condition(wanted)

    assert kept is passes({"scores": {"a": 0.7}, "errors": {}}, wanted)
    assert kept is passes({"scores": {"a": 0.7, "b": None}, "errors": {}}, wanted)
    assert not passes({"scores": {"a": 0.7}, "errors": {"c": {}}}, wanted)


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("vqascore", "'vqascore': column 1: vqascore is a number, where a condition is needed"),
        ("vqascore = 1", "'vqascore = 1': column 10: the text cannot be parsed"),
        ("vqascore >= much", "column 13: much is not scored, see --metric"),
        ("vqascore >= nan", "column 13: nan is not scored, see --metric"),
        ("vqascore >= 1e999", "column 13: 1e999 is too large or too long"),
        (
            "vqascore > 1 or clipscore >= 1",
            "--filter vqascore > 1 or clipscore >= 1: column 17: clipscore is not scored, see --metric",
        ),
    ],
)
def test_a_filter_that_cannot_be_applied_is_wrong_before_anything_is_scored(command, service, wanted, why):
    status, _, err = command(
        service, "batch", "rows.jsonl", "-o", "out.jsonl", "-m", "vqascore", "--filter", wanted
    )

    assert (2, []) == (status, service.sent)
    assert why in err


def files_in(shard):
    """The name, the date and the content of each file of a tar."""
    with tarfile.open(shard) as tar:
        return {each.name: (each.mtime, tar.extractfile(each).read()) for each in tar}


def test_new_shards_have_the_samples_that_pass(command, tmp_path):
    """With all their files, byte for byte; a shard without such a sample has no new one."""
    service = Numbered("clip@1", metrics={"vqascore": metric()})
    samples = {
        f"{n}.{suffix}": data
        for n in (1, 2, 3)
        for suffix, data in (("png", png()), ("cls", b"%d" % n), ("txt", b"cat 0.%d" % (3 * n)))
    }
    tar_of(Path("s-0.tar"), {"README": b"", **samples, "4.txt": b"no picture 0.9"})
    tar_of(Path("s-1.tar"), {"1.png": png(), "1.txt": b"cat 0.1"})
    tar_of(Path("s-2.tar"), {"1.png": png(), "1.txt": b"cat 1"})
    status, _, err = command(service, *TO_FOLDER, *KEPT)

    assert 1 == status
    assert "the samples that pass are in kept\n" in err
    assert {"s-0.tar", "s-2.tar"} == {path.name for path in Path("kept").glob("[!.]*")}
    known = files_in("s-0.tar")
    assert {n: known[n] for n in known if n[0] in "23"} == files_in("kept/s-0.tar")
    assert Path("out/kept.txt").read_text().split() == [image for image, _, _ in pairs(Dataset(Path("kept")))]


def test_new_shards_of_parquet_have_all_columns(command, tmp_path):
    """And the metadata of the schema, from which `datasets` makes pictures."""
    service = Numbered("clip@1", metrics={"vqascore": metric()})
    rows = [
        {"image": {"bytes": png(), "path": f"{n}.png"}, "prompt": f"cat {n / 300}", "extra": {"n": [n]}}
        for n in range(300)
    ]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"huggingface": "{}"})
    Path("in").mkdir()
    pq.write_table(table, "in/a.parquet")
    assert 0 == command(service, "batch", "in", "-o", "out", "-m", "vqascore", *KEPT)[0]
    found = pq.read_table("kept/a.parquet")

    assert pq.read_table("in/a.parquet").slice(150).equals(found, check_metadata=True)
    assert 2 == pq.ParquetFile("kept/a.parquet").num_row_groups


def test_a_shard_that_cannot_be_copied_is_a_line_and_the_others_are_copied(command, service, tmp_path):
    """Parquet does not have all types of Arrow."""
    (tmp_path / "in").mkdir()
    packed = pa.RunEndEncodedArray.from_arrays([1], ["x"])
    for name, more in (("a", packed), ("b", pa.array(["x"]))):
        rows = pa.table({"image": [png("red")], "prompt": ["p"], "tag": more})
        with pa.OSFile(f"in/{name}.arrow", "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows)
    status, _, err = command(service, "batch", "in", "-o", "out", "-m", "vqascore", *KEPT)

    assert 1 == status
    assert "the samples of in/a.arrow cannot be copied: Unhandled type" in err
    assert ["b.parquet"] == [each.name for each in Path("kept").iterdir() if each.suffix]


def test_a_new_shard_is_written_once_and_again_after_its_scores_changed(command, service, shards):
    """By the dates of both files; an interrupted one is none."""
    command(service, *TO_FOLDER, *KEPT)
    before = {path: path.stat().st_mtime_ns for path in Path("kept").glob("*.tar")}
    Path("kept/s-1.tar").rename("kept/s-1.tar.new")
    newer = before[Path("kept/s-0.tar")] + 1
    os.utime("out/s-0.parquet", ns=(newer, newer))
    command(service, *TO_FOLDER, *KEPT)
    after = {path: path.stat().st_mtime_ns for path in Path("kept").glob("*.tar")}

    assert {"kept/s-0.tar", "kept/s-1.tar"} == {str(path) for path in before if before[path] != after[path]}
    assert not Path("kept/s-1.tar.new").exists()
    assert ["0001.png", "0001.txt"] == list(files_in("kept/s-1.tar"))


def test_a_folder_with_the_samples_of_another_filter_is_not_mixed(command, service, shards):
    """Before anything is scored."""
    command(service, *TO_FOLDER, *KEPT)
    Path("out/s-0.parquet").unlink()
    asked = len(service.sent)
    status, _, err = command(service, *TO_FOLDER, "--filter", "vqascore >= 0.51", "--kept-shards", "kept")

    assert (2, asked) == (status, len(service.sent))
    assert "kept has the samples of vqascore >= 0.5, scores in ../out: name another folder" in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("-o", "out", "--kept-shards", "kept"),
            "--kept-shards needs --filter, and one shard, or several with a folder",
        ),
        (("-o", "out.jsonl", *KEPT), "--kept-shards needs --filter, and one shard, or several with a folder"),
        (("-o", "out", *KEPT, "--matrix"), "with --matrix, --sweep and --grid a sample has several scores"),
        (("-o", "out", *KEPT, "--grid", "2x2"), "with --matrix, --sweep and --grid a sample has several"),
        (("-o", "out", *KEPT[:3], "."), "the new shards would lie among others"),
        (("-o", "out", *KEPT[:3], "out"), "the new shards would lie among others"),
        (("-o", "out", *KEPT[:3], "s-0.tar"), "cannot be a folder of shards"),
        (("-o", "out", *KEPT[:3], "no/kept"), "cannot be a folder of shards"),
    ],
)
def test_new_shards_that_cannot_be_written_are_wrong_before_anything_is_scored(
    command, service, shards, arguments, why
):
    status, _, err = command(service, "batch", "s-{0..2}.tar", "-m", "vqascore", *arguments)

    assert (2, []) == (status, service.sent)
    assert why in err


@pytest.mark.parametrize(("out", "file"), [("out.jsonl", "one.parquet"), ("out.parquet", "s-0.tar")])
def test_the_samples_of_one_shard_are_copied_with_a_file_of_results(command, out, file, shards):
    """Also of a Parquet file, which is a table."""
    service = Numbered("clip@1", metrics={"vqascore": metric()})
    rows = [{"image": png(), "prompt": f"cat {n / 10}", "extra": n} for n in range(10)]
    pq.write_table(pa.Table.from_pylist(rows), "one.parquet")
    status, _, err = command(service, "batch", file, "-o", out, "-m", "vqascore", *KEPT)

    assert 0 == status, err
    assert "the samples that pass are in kept\n" in err
    assert [file] == [path.name for path in Path("kept").glob("[!.]*")]
    if file == "one.parquet":
        assert [5, 6, 7, 8, 9] == pq.read_table("kept/one.parquet")["extra"].to_pylist()
    else:
        assert files_in("s-0.tar") == files_in("kept/s-0.tar")


def test_new_shards_never_lie_among_results(command, service, shards):
    """Where their files would have the names of each other."""
    Path("scores").mkdir()
    arguments = ("-o", "scores/s-0.parquet", "-m", "vqascore", *KEPT[:3], "scores")
    status, _, err = command(service, "batch", "s-0.tar", *arguments)

    assert (2, []) == (status, service.sent)
    assert "the new shards would lie among others" in err
