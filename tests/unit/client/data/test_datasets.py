"""Data sets: every row is a pair, or says which row and column is wrong."""

import gzip
import json
from base64 import b64encode
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scoregate.data.datasets import Dataset
from scoregate.data.folders import captions_alone
from scoregate.errors import InputError
from scoregate.images import digest
from tests.support.pictures import png
from tests.support.shards import pairs

PICTURE = b"picture"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.png").write_bytes(PICTURE)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.JPG").write_bytes(PICTURE)
    return tmp_path


def test_a_folder_has_captions_beside_its_pictures(folder):
    """In folders below it too; white space around a caption is none of it."""
    (folder / "a.txt").write_text("\ufeffa cat\n", "utf-8")
    (folder / "sub" / "b.txt").write_text("a dog", "utf-8")

    assert [("a.png", "a cat", PICTURE), ("sub/b.JPG", "a dog", PICTURE)] == pairs(Dataset(folder))


def test_a_picture_without_a_caption_is_an_error_and_a_caption_alone_is_told(folder):
    """Neither is dropped silently."""
    (folder / "a.txt").write_bytes(b"\xff")
    (folder / "notes.txt").write_text("x", "utf-8")
    not_text, missing = Dataset(folder)

    assert "row 1, a.png: its caption a.txt: is not UTF-8" == not_text.fault
    assert "row 2, sub/b.JPG: its caption b.txt: No such file or directory" == missing.fault
    assert ["notes.txt"] == captions_alone(folder)


def test_a_folder_of_geneval_has_the_prompt_and_the_task_of_each_picture(tmp_path):
    """The metadata is an option of `geneval`; a grid beside the samples is none of them."""
    metadata = {"tag": "counting", "include": [{"class": "cup", "count": 2}], "prompt": "two cups"}
    for number in ("00000", "00001"):
        (tmp_path / number / "samples").mkdir(parents=True)
        (tmp_path / number / "grid.png").write_bytes(PICTURE)
        (tmp_path / number / "samples" / "0000.png").write_bytes(PICTURE)
    (tmp_path / "00000" / "metadata.jsonl").write_text(json.dumps(metadata), "utf-8")
    dataset = Dataset(tmp_path, metrics=["geneval", "vqascore"])
    first, second = dataset

    assert ("00000/samples/0000.png", "two cups", PICTURE) == (first.image, first.prompt, first.read())
    assert ({"geneval": metadata}, {"tag": "counting"}) == (first.options, first.columns)
    assert 2 == dataset.count()
    assert {} == next(iter(Dataset(tmp_path, metrics=["vqascore"]))).options
    said = "row 2, 00001/samples/0000.png: its metadata.jsonl: No such file or directory"
    assert said == second.fault


@pytest.mark.parametrize("name", ["metadata.jsonl", "metadata.csv", "metadata.parquet"])
def test_an_imagefolder_is_read_by_its_metadata(folder, name):
    """As Hugging Face lays it out: `file_name` and columns of the user's own."""
    write(
        folder / name, [{"file_name": "a.png", "text": "a cat"}, {"file_name": "sub/b.JPG", "text": "a dog"}]
    )
    found = pairs(Dataset(folder, prompt_column="text"))

    assert [("a.png", "a cat", PICTURE), ("sub/b.JPG", "a dog", PICTURE)] == found


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_a_file_names_pictures_relative_to_itself(folder, name):
    """Further columns come along, but for bytes."""
    write(folder / name, [{"image": "a.png", "prompt": "a cat", "good": 1}])
    [row] = Dataset(folder / name)

    assert PICTURE == row.read()
    assert {"good": "1" if name == "rows.csv" else 1} == row.columns


def test_columns_may_have_other_names(folder):
    """As the options say."""
    write(folder / "rows.csv", [{"file": "a.png", "caption": "a cat"}])

    assert [("a.png", "a cat", PICTURE)] == pairs(Dataset(folder / "rows.csv", "file", "caption"))


def test_parquet_may_hold_the_pictures(tmp_path):
    """As bytes, or as Hugging Face's images do; one without a name is called by its content."""
    write(tmp_path / "plain.parquet", [{"image": PICTURE, "prompt": "a cat"}])
    images = [{"bytes": PICTURE, "path": "a.png"}, {"bytes": PICTURE, "path": None}]
    write(tmp_path / "hf.parquet", [{"image": image, "prompt": "a cat"} for image in images])

    assert [(digest(PICTURE), "a cat", PICTURE)] == pairs(Dataset(tmp_path / "plain.parquet"))
    assert ["a.png", digest(PICTURE)] == [image for image, _, _ in pairs(Dataset(tmp_path / "hf.parquet"))]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{half", "row 2: not JSON"),
        ("[1]", "row 2: not a JSON object"),
        ("[" * 100_000, "row 2: not JSON"),
        ('{"prompt": "x"}', "row 2, column image is missing"),
        ('{"image": "", "prompt": "x"}', "row 2, column image is missing"),
        ('{"image": 5, "prompt": "x"}', "row 2, column image is no path of a file"),
        ('{"image": "a.png\\u0000", "prompt": "x"}', "row 2, column image is no path of a file"),
        ('{"image": "a.png"}', "row 2, column prompt is missing"),
        ('{"image": "a.png", "prompt": 5}', "row 2, column prompt is not a text"),
        ('{"image": "a.png", "prompt": " "}', "row 2, column prompt is empty"),
        ('{"image": "a.png", "prompt": "\\ud800"}', "row 2, column prompt has a character that is not text"),
        (json.dumps({"image": "a.png", "prompt": "x" * 4001}), "row 2, column prompt has 4001 characters"),
        ("{}", "row 2, column image is missing; column prompt is missing"),
    ],
)
def test_a_bad_row_names_its_row_and_column(folder, line, fault):
    """And the rows around it are read."""
    good = '{"image": "a.png", "prompt": "a cat"}'
    (folder / "rows.jsonl").write_text(f"{good}\n{line}\n\n{good}\n", "utf-8")
    first, bad, last = Dataset(folder / "rows.jsonl")

    assert bad.fault.startswith(fault)
    assert ["", ""] == [first.fault, last.fault]
    assert 4 == last.number  # its line


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("a.png,x,more", "row 2: has more cells than the first line names"),
        ("a.png", "row 2, column prompt is missing"),
        ("a.png,\udcff", "row 2, column prompt has a character that is not text"),
    ],
)
def test_a_bad_row_of_csv_names_its_row_and_column(folder, line, fault):
    """Bytes that are not UTF-8 are the row's fault alone."""
    text = f"image,prompt\na.png,a cat\n{line}\na.png,a cat\n"
    (folder / "rows.csv").write_bytes(text.encode(errors="surrogateescape"))
    first, bad, last = Dataset(folder / "rows.csv")

    assert fault == bad.fault
    assert ["", ""] == [first.fault, last.fault]


@pytest.mark.parametrize("image", ["gone.png", ".", "/dev/zero"])
def test_only_files_are_read(folder, image):
    """Not a folder, and no device that never ends."""
    write(folder / "rows.jsonl", [{"image": image, "prompt": "x"}])
    [row] = Dataset(folder / "rows.jsonl")

    with pytest.raises(FileNotFoundError, match="no such file"):
        row.read()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "rows.csv",
            "picture,prompt\na,b\n",
            "no column 'image'; there are picture, prompt: image_column='picture'",
        ),
        ("rows.csv", "image,text\na,b\n", "no column 'prompt'; there are image, text: prompt_column='text'"),
        ("rows.csv", "image,image\na,b\n", "must name the columns, each once"),
        ("rows.csv", "", "must name the columns"),
        ("rows.jsonl", "", "no rows"),
        ("rows.jsonl", "nothing\n", "none of the first rows can be read"),
        ("rows.parquet", "no parquet", "rows.parquet: "),
        ("rows.txt", "", "the name must end in"),
    ],
)
def test_a_file_without_the_columns_is_refused(tmp_path, name, text, said):
    """One line, instead of an error for each row."""
    (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(InputError, match=said):
        list(Dataset(tmp_path / name))


def test_a_folder_without_pictures_is_refused(tmp_path):
    """As is one that is not there."""
    with pytest.raises(InputError, match="no pictures, and no metadata"):
        list(Dataset(tmp_path))
    with pytest.raises(InputError, match="no such file or folder"):
        list(Dataset(tmp_path / "none"))


BASE64 = b64encode(png()).decode()


@pytest.mark.parametrize("cell", [BASE64, f"data:image/png;base64,{BASE64}", f"{BASE64[:76]}\n{BASE64[76:]}"])
@pytest.mark.parametrize("name", ["rows.tsv", "rows.jsonl", "rows.parquet"])
def test_a_cell_may_be_a_picture_in_base64(tmp_path, written, name, cell):
    """As in VLMEvalKit's TSV; such a picture is called by its content."""
    path = Path(written([{"index": 1, "image": cell, "question": "a cat"}], name))

    assert [(digest(png()), "a cat", png())] == pairs(Dataset(path, prompt_column="question"))


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("A" * 5000, "is neither a path of a file nor a picture in base64"),
        ("/" * 4097, "is neither a path of a file nor a picture in base64"),
    ],
)
def test_a_long_cell_that_is_no_picture_is_an_error_of_its_row(tmp_path, written, cell, fault):
    """It is no name of the row."""
    [row] = Dataset(Path(written([{"image": cell, "prompt": "a cat"}])))

    assert (None, f"row 1, column image {fault}") == (row.image, row.fault)


def test_a_short_path_of_letters_stays_one(folder, written):
    """Though it may be base64."""
    [row] = Dataset(Path(written([{"image": "iVBORw0KGgo", "prompt": "a cat"}])))

    assert ("iVBORw0KGgo", folder / "iVBORw0KGgo") == (row.image, row.image_file)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.tsv", "image\tprompt\na.png\ta; b, c\n"),
        ("rows.csv", "image\tprompt\na.png\ta; b, c\n"),
        (
            "rows.csv",
            'image;"prompt";"of, whom, and, why"\na.png;a; b, c;x\n'.replace("a; b, c", '"a; b, c"'),
        ),
        ("rows.csv", 'image,prompt,"a;b;c"\na.png,"a; b, c",x\n'),
        ("rows.tsv.gz", "image\tprompt\na.png\ta; b, c\n"),
    ],
)
def test_cells_are_separated_as_the_names_of_columns_are(folder, name, text):
    """By a comma, a semicolon as spreadsheets of some languages write it, or a tab."""
    data = ("\ufeff" + text).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    assert [("a.png", "a; b, c", PICTURE)] == pairs(Dataset(folder / name))


def test_a_table_of_one_column_is_one(tmp_path):
    """No separator is in its first line."""
    (tmp_path / "rows.csv").write_text("image\na.png\n", "utf-8")

    assert ["a.png"] == [row.image for row in Dataset(tmp_path / "rows.csv", no_prompt=True)]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.jsonl"])
def test_a_table_in_utf_16_is_said_to_be(tmp_path, name, encoding):
    """Excel writes such text."""
    mark = "" if encoding == "utf-16" else "\ufeff"
    (tmp_path / name).write_bytes(f"{mark}image,prompt\n".encode(encoding))

    with pytest.raises(InputError, match=f"{name}: is UTF-16: save it as UTF-8"):
        list(Dataset(tmp_path / name))


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet"])
def test_a_table_that_is_a_pointer_of_git_lfs_is_said_to_be(tmp_path, name):
    (tmp_path / name).write_text(LFS, "utf-8")

    with pytest.raises(InputError, match="is a pointer of Git LFS in place of the file: run `git lfs pull`"):
        list(Dataset(tmp_path / name))


def test_a_picture_that_is_a_pointer_of_git_lfs_is_said_to_be(folder):
    """The pictures of a data set that was cloned without them."""
    (folder / "a.png").write_text(LFS, "utf-8")
    write(folder / "rows.jsonl", [{"image": "a.png", "prompt": "a cat"}])
    [row] = Dataset(folder / "rows.jsonl")

    with pytest.raises(ValueError, match="is a pointer of Git LFS"):
        row.read()


def write(path, rows):
    """Rows of texts and numbers, in the format that the name says."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines), "utf-8")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
