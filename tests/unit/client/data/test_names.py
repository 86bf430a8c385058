"""Files of data sets: which are pictures, whose names match, and names that hold prompts."""

from unicodedata import normalize

import pytest

from scoregate import read_dataset
from scoregate.data.datasets import Dataset
from scoregate.data.folders import captions_alone, image_files, left_out
from scoregate.data.rows import kind_of
from tests.support.pictures import picture, png, saved
from tests.support.shards import pairs, tar_of

JPEG = saved(picture(), "JPEG")
NFC, NFD = (normalize(form, "caf\u00e9") for form in ("NFC", "NFD"))


def files(folder, names):
    """Files of these names, each with its content."""
    for name, content in names.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def box(*brands: bytes) -> bytes:
    """The beginning of a file of boxes: its brand, and the compatible ones."""
    return (
        (8 + 4 + 4 * len(brands)).to_bytes(4, "big") + b"ftyp" + brands[0] + bytes(4) + b"".join(brands[1:])
    )


TAKEN = {
    **{f"{suffix}.{suffix}": JPEG for suffix in ("jpg", "jpeg", "jfif", "jpe", "jif", "JPG", "jpg_large")},
    "png.png": png(),
    "apng.apng": png(),
    "no_suffix": png(),
    "photo.heif": box(b"mif1", b"mif1", b"heic"),
    "photo.hif": box(b"mif1", b"mif1", b"heic"),
    "video.mp4": box(b"isom"),
    "video.bin": box(b"isom"),
    "empty.png": b"",
}
HIDDEN = {
    ".ipynb_checkpoints/png-checkpoint.png": png(),
    "__MACOSX/png.png": png(),
    "._png.png": b"\0\5\x16\7",
    ".DS_Store": b"",
    "deep/.cache/png.png": png(),
}
OTHERS = {"drawing.psd": b"8BPS", "graph.svg": b"<svg/>", "broken": b"\0"}


def test_a_folder_has_every_file_that_is_a_picture_by_itself(tmp_path):
    """By its suffix or its content; hidden files and folders have no rows."""
    folder = files(tmp_path, {**TAKEN, **HIDDEN, **OTHERS, "png.txt": b"a square", "notes.md": b""})

    assert sorted(TAKEN) == sorted(file.name for file in image_files(folder))
    assert len(TAKEN) == Dataset(folder, prompt="a square").count()
    assert sorted(TAKEN) == [row.image for row in Dataset(folder, prompt="a square")]


def test_what_is_left_out_of_a_folder_is_neither_a_picture_nor_a_text_nor_hidden(tmp_path):
    folder = files(tmp_path, {**TAKEN, **HIDDEN, **OTHERS, "png.txt": b"a", "a.json": b"{}", "s.tar": b""})

    assert ["broken", "drawing.psd", "graph.svg", "s.tar"] == left_out(folder)


def test_a_hidden_folder_above_the_data_set_hides_nothing(tmp_path):
    """Such as that of a cache."""
    folder = files(tmp_path / ".cache" / "set", {"a.png": png(), "a.txt": b"a square"})

    assert [("a.png", "a square", png())] == pairs(Dataset(folder))


def test_a_tar_has_the_same_pictures(tmp_path):
    """Its hidden folders are those that archives of macOS and Jupyter have."""
    members = {
        "./a.jfif": JPEG,
        "./a.txt": b"a cat",
        "__MACOSX/b.png": png(),
        ".ipynb_checkpoints/c.png": png(),
    }
    [row] = Dataset(tar_of(tmp_path / "s.tar", members))

    assert ("a cat", JPEG, "") == (row.prompt, row.read(), row.fault)


BRANDS = {
    (b"heic", b"mif1", b"heic"): "heic",
    (b"mif1", b"mif1", b"heic"): "heic",
    (b"msf1", b"miaf", b"hevc"): "heic",
    (b"mif1", b"mif1", b"avif", b"miaf"): "avif",
    (b"avif", b"mif1", b"heic"): "avif",
    (b"mif1", b"mif1", b"jpeg"): "",
    (b"mif1",): "",
}


@pytest.mark.parametrize(("brands", "kind"), BRANDS.items())
def test_a_general_brand_has_the_format_of_its_compatible_ones(brands, kind):
    """`mif1` alone says nothing of the coding, which may be that of HEIC or of AVIF."""
    assert kind == kind_of(box(*brands))


@pytest.mark.parametrize(("on_disk", "named"), [(NFC, NFD), (NFD, NFC)])
def test_names_match_in_both_forms_of_their_accents(tmp_path, on_disk, named):
    """macOS writes an accent behind its letter, and other systems both as one."""
    folder = files(tmp_path / "set", {f"{on_disk}.png": png(), f"{named}.txt": b"a square"})
    files(tmp_path, {"p.json": f'{{"{named}": "a cat"}}'.encode()})
    files(tmp_path, {"t.jsonl": f'{{"image": "set/{named}.png", "prompt": "a dog"}}\n'.encode()})

    assert [(f"{on_disk}.png", "a square", png())] == pairs(Dataset(folder))
    assert [] == captions_alone(folder)
    assert [(f"{on_disk}.png", "a cat", png())] == pairs(Dataset(folder, prompts=tmp_path / "p.json"))
    assert [(f"set/{named}.png", "a dog", png())] == pairs(Dataset(tmp_path / "t.jsonl"))


PROMPTS = {
    r"cubes/\d+_(.*)_seed": "a red cube",
    r"\d+_(?P<prompt>.*)_seed(\d+)": "a red cube",
    r"(\d+)_(?P<prompt>.*)_seed": "a red cube",
    "a_red_[a-z]+": "a red cube",
}


@pytest.mark.parametrize(("expression", "prompt"), PROMPTS.items())
def test_a_prompt_may_be_in_the_name_of_its_picture(tmp_path, expression, prompt):
    """A group or all that matches, with underscores as spaces; folders are part of the name."""
    folder = files(tmp_path, {"cubes/0001_a_red_cube_seed42.png": png()})

    assert [("cubes/0001_a_red_cube_seed42.png", prompt, png())] == pairs(
        Dataset(folder, prompt_from_name=expression)
    )
    assert [prompt] == [item.prompt for item in read_dataset(folder, prompt_from_name=expression)]


def test_a_name_without_a_prompt_is_a_row_with_an_error(tmp_path):
    """Whether the expression does not match, or leaves nothing."""
    folder = files(tmp_path, {"0001_.png": png(), "cat.png": png()})
    empty, other = Dataset(folder, prompt_from_name=r"\d+_(.*)")

    assert "row 1, 0001_.png: its name: is empty" == empty.fault
    assert "row 2, cat.png: its name: --prompt-from-name does not match" == other.fault


def test_one_of_several_pictures_of_a_sample_is_chosen_by_its_part(tmp_path):
    """`a.left.png` and `a.right.png` have the key `a`."""
    members = {"a.left.png": png("red"), "a.RIGHT.png": png("blue"), "a.txt": b"a square"}
    tar = tar_of(tmp_path / "s.tar", members)

    for part, colour in (("left", "red"), ("right", "blue")):
        assert [("s.tar/a", "a square", png(colour))] == pairs(Dataset(tar, image_part=part))
        assert [png(colour)] == [item.image for item in read_dataset(tar, image_part=part)]


def test_a_sample_whose_pictures_have_longer_suffixes_says_how_they_are_read(tmp_path):
    """A full stop in a key, such as a number, makes such suffixes, too."""
    tar = tar_of(
        tmp_path / "s.tar", {"a.left.png": png(), "a.txt": b"x", "cat1.5.png": png(), "cat1.txt": b"x"}
    )
    [left, cat], [_, other] = Dataset(tar), Dataset(tar, image_part="left")
    why = "it has no picture: a key ends at the first full stop of a name, and the rest is"

    assert left.fault == f"s.tar/a: {why} .left.png; rename the files, or take one by --image-part left"
    assert cat.fault == f"s.tar/cat1: {why} .5.png; rename the files, or take one by --image-part 5"
    assert "s.tar/cat1: it has no picture left; there are .5.png" == other.fault
