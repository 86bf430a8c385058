"""Folders with a file of prompts: every picture and every prompt is a row."""

import json

import pytest

from scoregate import read_dataset
from scoregate.data.datasets import Dataset
from scoregate.errors import BadImageError, InputError
from scoregate.images import encoded
from tests.support.pictures import png
from tests.support.shards import pairs

PICTURE = png("red")


@pytest.fixture
def folder(tmp_path):
    """Two pictures, one of them in a folder of its own."""
    (tmp_path / "in" / "sub").mkdir(parents=True)
    for name in ("a.png", "sub/b.jpg"):
        (tmp_path / "in" / name).write_bytes(PICTURE)
    return tmp_path / "in"


FORMS = {
    "prompts.json": '{"a.png": "a cat", "sub/b": "a dog"}',
    "prompts.csv": 'image,prompt\nsub/b,a dog\na.png,"a cat"\n',
    "prompts.jsonl": '{"image": "a", "prompt": "a cat"}\n{"image": "sub/b.jpg", "prompt": "a dog"}\n',
}


@pytest.mark.parametrize("name", FORMS)
def test_a_file_has_the_prompts_by_the_names_of_pictures(folder, tmp_path, name):
    """Relative to the folder, with or without the suffix."""
    (tmp_path / name).write_text(FORMS[name], "utf-8")
    dataset = Dataset(folder, prompts=tmp_path / name)

    assert [("a.png", "a cat", PICTURE), ("sub/b.jpg", "a dog", PICTURE)] == pairs(dataset)
    assert ["a cat", "a dog"] == [item.prompt for item in read_dataset(folder, prompts=str(tmp_path / name))]


def test_columns_of_a_file_of_prompts_may_have_other_names(folder, tmp_path):
    (tmp_path / "p.csv").write_text("key,text\na,x\nsub/b,y\n", "utf-8")
    rows = Dataset(folder, "key", "text", prompts=tmp_path / "p.csv")

    assert ["x", "y"] == [row.prompt for row in rows]


def test_further_columns_of_a_file_of_prompts_are_those_of_the_rows(folder, tmp_path):
    """So that figures by skill need no join."""
    (tmp_path / "p.csv").write_text("image,prompt,skill\na,x,count\nsub/b,y,colour\n", "utf-8")

    assert [{"skill": "count"}, {"skill": "colour"}] == [
        row.columns for row in Dataset(folder, prompts=tmp_path / "p.csv")
    ]


def test_a_prompt_may_have_several_pictures(folder, tmp_path):
    """`cat` is also the prompt of `cat_0.png` and `cat/0.png`; a name of its own comes first."""
    for name in ("cat_0.png", "cat_1.png", "dog/0.png", "dog/1.png"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(PICTURE)
    prompts = {"a": "x", "sub/b": "y", "cat": "a cat", "cat_1": "two cats", "dog": "a dog"}
    (tmp_path / "p.json").write_text(json.dumps(prompts), "utf-8")

    found = {row.image: row.prompt for row in Dataset(folder, prompts=tmp_path / "p.json") if not row.fault}
    assert {"cat_0.png": "a cat", "cat_1.png": "two cats", "dog/0.png": "a dog", "dog/1.png": "a dog"} == {
        name: prompt for name, prompt in found.items() if name[0] in "cd"
    }


def test_a_picture_without_a_prompt_and_a_prompt_without_a_picture_are_rows(folder, tmp_path):
    """With an error that names both; neither is dropped."""
    prompts = {"gone.png": "a bird", "a.png": " ", "../secret": "x"}
    (tmp_path / "p.json").write_text(json.dumps(prompts), "utf-8")
    dataset = Dataset(folder, prompts=tmp_path / "p.json")
    empty, unnamed, gone, outside = dataset

    assert "row 1, a.png: its prompt is empty" == empty.fault
    assert "row 2, sub/b.jpg: p.json has no prompt of it" == unnamed.fault
    assert "row 3, gone.png: p.json names it, and there is no such picture" == gone.fault
    assert ("../secret", b"") == (outside.image, outside.image_file)
    assert 4 == dataset.count()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("p.json", '{"a": "x", "a": "y"}', "row 2: a stands there twice"),
        ("p.json", "[1]", "not a JSON object"),
        ("p.json", "{", "not JSON"),
        ("p.json", "[" * 100_000, "not JSON"),
        ("p.csv", "name,prompt\na,x\n", "row 1: no column 'image'; there are name, prompt"),
        ("p.jsonl", "{}\nno\n", "row 1: no column 'image'"),
        ("p.jsonl", '{"image": 5, "prompt": "x"}', "row 1: column image is no name of a picture"),
        ("p.jsonl", "no", "row 1: not JSON"),
        ("p.txt", "a\tx", "the name must end in"),
    ],
)
def test_a_file_that_has_no_prompts_by_name_is_refused(folder, tmp_path, name, text, why):
    """One line, before anything is scored."""
    (tmp_path / name).write_text(text, "utf-8")

    with pytest.raises(InputError, match=why):
        list(Dataset(folder, prompts=tmp_path / name))


def test_an_item_whose_row_cannot_be_read_has_the_error_in_the_place_of_its_picture(folder, tmp_path):
    """It names the row and the reason; such an item is not sent, and has that error."""
    (tmp_path / "rows.jsonl").write_text('{"image": "in/a.png", "prompt": "x"}\n{"image": 1}\n', "utf-8")
    [good, bad] = read_dataset(tmp_path / "rows.jsonl")

    assert PICTURE == encoded(good.image)
    assert isinstance(bad.image, BadImageError)
    with pytest.raises(BadImageError, match="row 2, column image is no path of a file"):
        encoded(bad.image)


def test_an_item_has_all_pictures_of_its_row(tmp_path):
    """The frames in place of one picture, the picture before the edit, and those it is compared with."""
    for colour in ("red", "lime", "blue", "white"):
        (tmp_path / f"{colour}.png").write_bytes(png(colour))
    row = {"prompt": "x", "views": ["red.png", "lime.png"], "source": "blue.png", "references": ["white.png"]}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row), "utf-8")
    [item] = read_dataset(tmp_path / "rows.jsonl", frames_column="views", uses=("source", "references"))

    assert [png("red"), png("lime")] == item.image.frames
    assert (png("blue"), [png("white")]) == (item.source, item.references)
    assert "red.png, lime.png" == item.id


def test_a_column_named_as_one_of_pictures_may_be_something_else(folder):
    """Of a data set with the column `source`, for metrics that use no such picture."""
    table = folder / "rows.jsonl"
    table.write_text('{"image": "a.png", "prompt": "x", "source": "a photo site"}', "utf-8")
    [read], [wrong] = read_dataset(table), read_dataset(table, uses=["source"])

    assert (PICTURE, None) == (read.image, read.source)
    with pytest.raises(BadImageError, match="a photo site: no such file"):
        encoded(wrong.image)


def test_one_column_or_one_metric_may_be_a_text(folder):
    """As for the client's methods; a column of another name is a mistake, and not left out."""
    table = folder / "rows.jsonl"
    table.write_text('{"image": "a.png", "prompt": "x", "source": "a.png", "ocr.text": "STOP"}', "utf-8")
    [item] = read_dataset(table, "ocr", uses="source")

    assert (PICTURE, {"ocr": {"text": "STOP"}}) == (item.source, item.options)
    with pytest.raises(InputError, match="uses: 'sources': choose from references, source"):
        next(read_dataset(table, uses=["sources"]))


@pytest.mark.parametrize("image", ["a.png", "none.png"])
def test_an_item_has_the_metrics_and_options_of_its_row(folder, image):
    """Of those that are named, also with a picture that cannot be read: its error is of these metrics."""
    row = {"image": image, "prompt": "x", "by": ["ocr"], "ocr.text": "STOP"}
    (folder / "rows.jsonl").write_text(json.dumps(row), "utf-8")
    [item] = read_dataset(folder / "rows.jsonl", ["ocr", "vqascore"], metrics_column="by")

    assert ["ocr"] == list(item.metrics)
    assert {"ocr": {"text": "STOP"}} == item.options
