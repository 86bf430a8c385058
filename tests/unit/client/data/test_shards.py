"""Data sets in shards: each sample is a row, and what cannot be read is a row with an error."""

import gzip
import io
import json
import re
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.data import shards
from scoregate.data.datasets import Dataset
from scoregate.errors import InputError
from scoregate.records import Record
from tests.support.pictures import png
from tests.support.shards import pairs, tar_of

PICTURE = png("red")
SAMPLE = {"0001.png": PICTURE, "0001.txt": b"a cat\n"}


def faults(dataset):
    return [row.fault for row in dataset]


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_a_tar_of_webdataset_has_a_row_for_each_key(tmp_path, name):
    """The picture is named by its shard and its key; folders and other files are no samples."""
    members = {"x/": None, "x/1.jpg": PICTURE, "x/1.txt": "a cäfé \n".encode(), "x/1.cls": b"7"}
    tar_of(
        tmp_path / name, members | {"__meta__.txt": b"", "README": b"", "x/2.PNG": PICTURE, "x/2.txt": b"b"}
    )

    assert [(f"{name}/x/1", "a cäfé", PICTURE), (f"{name}/x/2", "b", PICTURE)] == pairs(
        Dataset(tmp_path / name)
    )


@pytest.mark.parametrize(
    ("text", "fields", "prompt"),
    [
        (None, {"prompt": "p", "caption": "c"}, "p"),
        (None, {"caption": "c"}, "c"),
        (b"t", {"caption": "c"}, "t"),
        (b"t", {"prompt": "p"}, "p"),
    ],
)
def test_the_prompt_of_a_sample_is_in_its_json_or_its_text(tmp_path, text, fields, prompt):
    """`prompt`, then the text, then `caption`."""
    members = {"1.webp": PICTURE, "1.json": json.dumps(fields).encode()}
    tar_of(tmp_path / "a.tar", members | ({} if text is None else {"1.txt": text}))

    assert [prompt] == [row.prompt for row in Dataset(tmp_path / "a.tar")]


def test_the_fields_of_json_are_columns_and_options(tmp_path):
    """As the cells of a row are; `--prompt-column` names another field."""
    fields = {"good": 1, "text": "a cat", "ocr.text": "STOP", "image": "/etc/passwd"}
    tar_of(tmp_path / "a.tar", {"1.png": PICTURE, "1.json": json.dumps(fields).encode()})
    [row] = Dataset(tmp_path / "a.tar", prompt_column="text", metrics=["ocr"])

    assert ("a cat", PICTURE, {"ocr": {"text": "STOP"}}) == (row.prompt, row.read(), row.options)
    assert 1 == row.columns["good"]


BROKEN = {
    "no picture": ({"1.txt": b"x"}, "it has no picture"),
    "two pictures": ({"1.png": PICTURE, "1.jpg": PICTURE, "1.txt": b"x"}, "it has two files for the picture"),
    "no JSON": ({"1.png": PICTURE, "1.json": b"{"}, "its JSON is not JSON"),
    "no object": ({"1.png": PICTURE, "1.json": b"[1]"}, "its JSON is not a JSON object"),
    "no text": ({"1.png": PICTURE, "1.txt": b"\xff"}, "its text is not UTF-8"),
    "a long text": ({"1.png": PICTURE, "1.txt": bytes(2**20 + 1)}, ".txt has 1048577 bytes"),
    "a link": ({"1.png": "/etc/passwd", "1.txt": b"x"}, ".png is a link"),
}


@pytest.mark.parametrize(("members", "fault"), BROKEN.values(), ids=BROKEN)
def test_a_broken_sample_is_a_row_that_names_its_shard_and_its_key(tmp_path, members, fault):
    """And the samples around it are read."""
    tar_of(tmp_path / "a.tar", {"0.png": PICTURE, "0.txt": b"x", **members, "2.png": PICTURE, "2.txt": b"x"})
    first, bad, last = Dataset(tmp_path / "a.tar")

    assert bad.fault.startswith(f"a.tar/1: {fault}")
    assert ("a.tar/1", "", "") == (bad.image, first.fault, last.fault)


def test_a_sample_without_a_prompt_names_its_shard_and_its_key(tmp_path):
    tar_of(tmp_path / "a.tar", SAMPLE | {"0002.png": PICTURE})

    assert ["", "a.tar/0002, column prompt is missing"] == faults(Dataset(tmp_path / "a.tar"))


def test_a_picture_that_is_too_large_is_not_read(tmp_path):
    """It is skipped by the size in its header."""
    header = tarfile.TarInfo("0000.png")
    header.size = shards.MAX_IMAGE + 512
    with (tmp_path / "a.tar").open("wb") as file:
        file.write(header.tobuf())
        file.seek(header.size, 1)  # a hole
        file.write(SAMPLE_BLOCKS + bytes(1024))

    assert [f"a.tar/0000: .png has {header.size} bytes, and {shards.MAX_IMAGE} are allowed", ""] == faults(
        Dataset(tmp_path / "a.tar", no_prompt=True)
    )


def test_a_key_with_a_new_line_is_an_error(tmp_path):
    """A list of keys has one in each line."""
    tar_of(tmp_path / "a.tar", {"a\nb.png": PICTURE, "a\nb.txt": b"x"})

    assert ["a.tar/a\nb: its name has characters that are not text"] == faults(Dataset(tmp_path / "a.tar"))


def test_nothing_is_written_whatever_the_names_in_a_tar_are(tmp_path):
    """They are names of samples, not of files."""
    (tmp_path / "in").mkdir()
    tar_of(
        tmp_path / "in" / "a.tar", {"../x.png": PICTURE, "../x.txt": b"x", "/y.png": PICTURE, "/y.txt": b"y"}
    )

    assert ["a.tar/../x", "a.tar//y"] == [image for image, _, _ in pairs(Dataset(tmp_path / "in"))]
    assert ["in"] == [each.name for each in tmp_path.iterdir()]


def torn(data):
    return data[:3000]


def without_mark(data):
    return data[: data.rindex(b"a cat") - 5 + 517]


def damaged(data):
    at = data.index(b"0002.png")
    return data[:at] + b"\xff" + data[at + 1 :]


def followed(data):
    return data + data


DAMAGE = {
    "torn": torn,
    "without the mark of its end": lambda data: data.rstrip(b"\0") + bytes(-len(data.rstrip(b"\0")) % 512),
    "with a damaged header": damaged,
    "followed by another": followed,
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_tar_is_read_up_to_the_damage_which_is_a_row(tmp_path, damage, packed):
    """No sample is lost in silence."""
    tar_of(tmp_path / "a.tar", SAMPLE | {"0002.png": PICTURE, "0002.txt": b"a cat"})
    file = tmp_path / ("b.tar.gz" if packed else "b.tar")
    data = damage((tmp_path / "a.tar").read_bytes())
    file.write_bytes(gzip.compress(data) if packed else data)
    *read, last = Dataset(file)

    assert [] == [row.fault for row in read if row.fault]
    assert last.fault.startswith(f"{file.name}, row {len(read) + 1}: the shard cannot be read ")


@pytest.mark.parametrize("data", [b"", b"no tar", bytes(100), b"\x1f\x8b no gzip"])
@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.arrow"])
def test_what_is_no_shard_is_one_row_with_an_error(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    [row] = Dataset(tmp_path / name)

    assert row.fault.startswith(f"{name}, row 1: the shard cannot be read from row 1 on: ")


def header(**changes):
    info = tarfile.TarInfo("1.png")
    for name, value in changes.items():
        setattr(info, name, value)
    return info


@pytest.mark.parametrize(
    "info",
    [
        header(type=tarfile.GNUTYPE_LONGNAME, size=2**33),
        header(type=tarfile.XHDTYPE, size=2**33),
        header(size=-512),
        header(pax_headers={"size": "-4096"}),
        header(pax_headers={"size": "9" * 30}),
        header(size=2**70),
    ],
    ids=[
        "a long name",
        "long attributes",
        "a negative size",
        "one in attributes",
        "a large size in attributes",
        "a large size",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_would_take_memory_or_never_end_is_a_damage(tmp_path, info, packed):
    """`tarfile` itself reads the first two in one go, and others without end."""
    file = io.BytesIO()
    file.write(info.tobuf(tarfile.PAX_FORMAT if info.pax_headers else tarfile.GNU_FORMAT))
    file.write(bytes(10240))
    shard = tmp_path / ("a.tar.gz" if packed else "a.tar")
    shard.write_bytes(gzip.compress(file.getvalue()) if packed else file.getvalue())
    [row] = Dataset(shard)

    assert "the shard cannot be read" in row.fault


def attributes(size):
    """A header with *size* bytes of attributes, and a file that they are of."""
    record = f"{size} comment=".encode().ljust(size - 1, b"x") + b"\n"
    first = header(type=tarfile.XHDTYPE, size=size).tobuf(tarfile.USTAR_FORMAT)
    return first + record + bytes(-size % 512)


SAMPLE_BLOCKS = header(size=len(PICTURE)).tobuf() + PICTURE + bytes(-len(PICTURE) % 512)
SPARSE = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
HEADERS = {
    "a chain of attributes": (attributes(40) * 1500, "a file with more than 16 headers"),
    "a chain of long names": (
        (header(type=tarfile.GNUTYPE_LONGNAME, size=5).tobuf() + b"bbbb".ljust(512, b"\0")) * 3000,
        "a file with more than 16 headers",
    ),
    "attributes of more than 64 KiB": (attributes(2**16 + 1), "a header of 65537 bytes"),
    "a sparse file with a long map": (
        header(type=tarfile.XHDTYPE, size=len(SPARSE)).tobuf(tarfile.USTAR_FORMAT)
        + SPARSE.ljust(512, b"\0")
        + header(size=2**22).tobuf()
        + (b"999999999\n" + b"1\n" * 2**21)[: 2**22],
        "headers of more than 1048576 bytes",
    ),
}


@pytest.mark.parametrize(("headers", "fault"), HEADERS.values(), ids=HEADERS)
def test_headers_of_a_file_are_bounded_in_their_number_and_their_bytes(tmp_path, headers, fault):
    """`tarfile` reads them by recursion, and the map of a sparse file to its end."""
    (tmp_path / "a.tar").write_bytes(headers + SAMPLE_BLOCKS + bytes(1024))

    assert [f"a.tar, row 1: the shard cannot be read from row 1 on: {fault}"] == faults(
        Dataset(tmp_path / "a.tar")
    )


def test_attributes_of_64_kib_are_read(tmp_path):
    (tmp_path / "a.tar").write_bytes(attributes(2**16) + SAMPLE_BLOCKS + bytes(1024))

    assert [""] == faults(Dataset(tmp_path / "a.tar", no_prompt=True))


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), AttributeError("x"), KeyError("y")])
def test_whatever_reading_a_shard_raises_is_a_row(tmp_path, monkeypatch, error):
    """And the shards behind it are read."""

    def broken(shard):
        yield Record(1, {"image": "a.png", "prompt": "a cat"})
        raise error

    monkeypatch.setitem(shards.READERS, ".tar", broken)
    tar_of(tmp_path / "a.tar", SAMPLE)
    said = str(error) or type(error).__name__

    assert ["", f"a.tar, row 2: the shard cannot be read from row 2 on: {said}"] == faults(
        Dataset(tmp_path / "a.tar")
    )


@pytest.fixture
def three(tmp_path):
    """Three tar files of two samples, the second one broken."""
    for number in range(3):
        members = {"0001.png": PICTURE, "0001.txt": b"a", "0002.png": PICTURE, "0002.txt": b"b"}
        tar_of(tmp_path / f"s-{number:02}.tar", members)
    (tmp_path / "s-01.tar").write_bytes(b"no tar")
    return tmp_path


@pytest.mark.parametrize("path", [".", "s-{00..02}.tar", "s-0{0..2}.tar"])
def test_a_folder_or_a_pattern_names_shards(three, path):
    """Their rows are numbered through, and a broken one is one of them."""
    rows = list(Dataset(three / path))

    assert [1, 2, 3, 4, 5] == [row.number for row in rows]
    assert ["s-00.tar/0001", "s-00.tar/0002", None, "s-02.tar/0001", "s-02.tar/0002"] == [
        row.image for row in rows
    ]
    assert rows[2].fault.startswith("s-01.tar, row 1: the shard cannot be read")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("s-{00..04}.tar", "2 of 5 files are missing, first "),
        ("s-{2..0}.tar", "shards have names that end in"),
        ("s-{0..2}.zip", "shards have names that end in"),
        ("s-{0..999999999}.tar", "more than 100000 files"),
        ("{0..1}/{0..1}.tar", "two shards have the same name"),
    ],
)
def test_a_pattern_that_names_no_shards_is_wrong_before_anything_is_scored(three, pattern, why):
    for folder in ("0", "1"):
        (three / folder).mkdir()
        for name in ("0.tar", "1.tar"):
            tar_of(three / folder / name, SAMPLE)
    with pytest.raises(InputError, match=why):
        list(Dataset(three / pattern))


def test_a_folder_of_pictures_with_a_tar_is_a_folder_of_pictures(three):
    (three / "a.png").write_bytes(PICTURE)
    (three / "a.txt").write_text("a cat", "utf-8")

    assert [("a.png", "a cat", PICTURE)] == pairs(Dataset(three))


def table(*prompts):
    images = [{"bytes": PICTURE, "path": f"{prompt}.png"} for prompt in prompts]
    return pa.table({"image": images, "prompt": list(prompts)})


def as_saved(path, *prompts):
    """As `datasets.Dataset.save_to_disk` writes a file: an Arrow stream."""
    rows = table(*prompts)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows, max_chunksize=2)


def in_parquet(path, *prompts):
    pq.write_table(table(*prompts), path)


@pytest.mark.parametrize(("suffix", "write"), [("arrow", as_saved), ("parquet", in_parquet)])
def test_a_folder_of_arrow_or_parquet_has_the_pictures(tmp_path, suffix, write):
    """As `datasets` saves them, and as they lie on Hugging Face's hub."""
    write(tmp_path / f"data-00000-of-00002.{suffix}", "a", "b", "c")
    write(tmp_path / f"data-00001-of-00002.{suffix}", "d")
    (tmp_path / "state.json").write_text("{}", "utf-8")

    assert [(f"{name}.png", name, PICTURE) for name in "abcd"] == pairs(Dataset(tmp_path))


@pytest.mark.parametrize(("suffix", "write"), [("arrow", as_saved), ("parquet", in_parquet)])
def test_a_data_set_of_the_hub_or_of_one_split_is_its_shards(tmp_path, suffix, write):
    """`data/*.parquet`, and a `DatasetDict` that was saved."""
    inner = tmp_path / ("data" if suffix == "parquet" else "train")
    inner.mkdir()
    if suffix == "arrow":
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["train"]}', "utf-8")
    write(inner / f"train-00000-of-00001.{suffix}", "a", "b")

    assert [(f"{name}.png", name, PICTURE) for name in "ab"] == pairs(Dataset(tmp_path))


def test_of_several_splits_one_has_to_be_named(tmp_path):
    """Their files have the same names."""
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["test", "train"]}', "utf-8")
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        as_saved(tmp_path / split / "data-00000-of-00001.arrow", split)

    said = f"several splits, name one of {tmp_path}/test, {tmp_path}/train"
    with pytest.raises(InputError, match=said):
        list(Dataset(tmp_path))
    assert [("test.png", "test", PICTURE)] == pairs(Dataset(tmp_path / "test"))


def test_gzip_is_unpacked_whatever_its_name(tmp_path):
    """A shard that was packed, and kept its name."""
    packed = tar_of(tmp_path / "a.tar.gz", SAMPLE)
    packed.rename(tmp_path / "a.tar")

    assert [("a.tar/0001", "a cat", PICTURE)] == pairs(Dataset(tmp_path / "a.tar"))


def test_pictures_that_are_all_before_their_texts_are_said_to_be(tmp_path):
    """As `tar` writes files in the order of a folder."""
    tar_of(tmp_path / "a.tar", {"1.png": PICTURE, "2.png": PICTURE, "1.txt": b"x", "2.txt": b"x"})

    with pytest.raises(InputError, match="a picture and its text are neighbours in a tar"):
        list(Dataset(tmp_path / "a.tar"))


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.arrow", "0.parquet"])
def test_a_pointer_of_git_lfs_is_said_to_be_one(tmp_path, name):
    """In place of a file that is damaged."""
    (tmp_path / name).write_bytes(LFS)
    [row] = Dataset(tmp_path)

    assert "is a pointer of Git LFS in place of the file: run `git lfs pull`" in row.fault


def test_a_folder_of_img2dataset_is_its_tar_files(tmp_path):
    """The Parquet beside each has no pictures."""
    tar_of(tmp_path / "00000.tar", SAMPLE)
    pq.write_table(pa.table({"caption": ["a cat"], "key": ["0001"]}), tmp_path / "00000.parquet")

    assert [("00000.tar/0001", "a cat", PICTURE)] == pairs(Dataset(tmp_path))


def test_a_broken_row_or_file_of_parquet_names_the_file(tmp_path):
    in_parquet(tmp_path / "0.parquet", "a", " ")
    (tmp_path / "1.parquet").write_bytes(b"no Parquet")
    good, empty, broken = Dataset(tmp_path)

    assert ("", "0.parquet, row 2, column prompt is empty") == (good.fault, empty.fault)
    assert broken.fault.startswith("1.parquet, row 1: the shard cannot be read from row 1 on: ")


def test_a_column_that_no_sample_has_is_said_at_once(tmp_path):
    tar_of(tmp_path / "a.tar", {"1.png": PICTURE, "1.json": b'{"text": "a cat"}'})

    with pytest.raises(InputError, match="no column 'prompt'; there are text, image: prompt_column='text'"):
        list(Dataset(tmp_path / "a.tar"))


def test_shards_are_named_by_a_pattern_of_the_shell_or_by_several_paths(tmp_path):
    """In the order of their names, or as given; then a Parquet file is a shard, too."""
    (tmp_path / "more").mkdir()
    for name in ("s-2.tar", "s-10.tar", "more/t.tar"):
        tar_of(tmp_path / name, SAMPLE)
    pq.write_table(pa.table({"image": [PICTURE], "prompt": ["a dog"]}), tmp_path / "p.parquet")
    several = Dataset(tmp_path / "s-*.tar", more=[tmp_path / "p.parquet", tmp_path / "more"])

    assert ["s-10.tar/0001", "s-2.tar/0001"] == [row.image for row in Dataset(tmp_path / "s-*.tar")]
    assert ["a cat", "a cat", "a dog", "a cat"] == [row.prompt for row in several]
    assert [1, 2, 3, 4] == [row.number for row in several]


@pytest.mark.parametrize(
    ("path", "more", "why"),
    [
        ("no-*.tar", [], "no-*.tar: there is no such file"),
        ("*", [], "shards have names that end in"),
        ("a.tar", ["folder"], "folder: is no shard; name the data sets of several generators as NAME=PATH"),
        ("a.tar", ["rows.jsonl"], "rows.jsonl: is no shard"),
        ("a.tar", ["a.tar"], "two shards have the same name"),
    ],
)
def test_paths_that_name_no_shards_are_refused(tmp_path, path, more, why):
    """Before anything is read."""
    tar_of(tmp_path / "a.tar", SAMPLE)
    (tmp_path / "rows.jsonl").write_text('{"image": "a.png", "prompt": "a"}')
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.png").write_bytes(PICTURE)

    with pytest.raises(InputError, match=re.escape(why)):
        list(Dataset(tmp_path / path, more=[tmp_path / each for each in more]))
