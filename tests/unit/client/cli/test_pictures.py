"""Pictures on the command line: folders, URLs, HEIC; and those of data sets that cannot be read."""

import re
import sys
from pathlib import Path

import httpx2 as httpx
import pytest

from scoregate.data.sources import MAX_BYTES, fetched
from scoregate.errors import InputError
from tests.support.answers import problem
from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.cli.served import Service, lines, metric

URL = "http://pictures/p.png"
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"
MP4 = b"\0\0\0\x18ftypisom\0\0\0\0isommp41"


@pytest.fixture
def service():
    """A service of one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


def folder_of(tmp_path, **files):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


@pytest.mark.parametrize("name", ["score", "rank"])
def test_a_folder_is_all_its_pictures(command, service, tmp_path, name):
    """In the order of their names; other files are left out."""
    folder_of(tmp_path, b_png=png("blue"), a_png=png("red"), a_txt=b"a square", c_mp4=MP4)
    status, out, _ = command(service, name, "folder", "p.png", "-p", "a square")
    [sent] = service.sent

    assert 0 == status
    assert 4 == len(sent.get("items", sent.get("images")))
    assert ["folder/a.png", "folder/b.png", "folder/c.mp4", "p.png"] == [
        word for line in out.splitlines()[1:] for word in line.split() if word.endswith((".png", ".mp4"))
    ]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx.Response(404), f"{URL}: HTTP status 404"),
        (httpx.Response(200, content=bytes(MAX_BYTES + 1)), f"{URL}: has more than {MAX_BYTES} bytes"),
        (httpx.ConnectError("no route"), f"{URL}: no route"),
        (httpx.ReadError(""), f"{URL}: ReadError"),
        (UnicodeError("label too long"), f"{URL}: label too long"),
    ],
    ids=["status", "large", "unreachable", "an error without a text", "a host that is none"],
)
def test_a_url_without_a_picture_is_named_with_the_reason(answer, said):
    """In one line."""

    def answered(request):
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        fetched(URL, httpx.MockTransport(answered))


def test_a_url_that_cannot_be_downloaded_is_one_line(command, service):
    """Status 2, and nothing is requested of the service."""
    url = "http://127.0.0.1:1/p.png"
    status, _, err = command(service, "score", url, "-p", "a square")

    assert (2, []) == (status, service.sent)
    assert err.startswith(f"scoregate: {url}: ")
    assert 1 == err.count("\n")


def test_a_folder_without_pictures_is_one_line(command, service, tmp_path):
    """Status 2."""
    folder_of(tmp_path, a_txt=b"a square")
    status, _, err = command(service, "score", "folder", "-p", "a square")

    assert (2, ["scoregate: folder: there is no picture in this folder"]) == (status, err.splitlines())


def test_heic_without_its_package_names_it(command, service, tmp_path, monkeypatch):
    """For a picture on the command line and for a row of a data set."""
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    folder_of(tmp_path, a_heic=HEIC, a_txt=b"a square")
    status, _, err = command(service, "score", "folder/a.heic", "-p", "a square")

    assert (2, []) == (status, service.sent)
    assert "folder/a.heic: is HEIC: pip install pillow-heif" in err
    status, _, err = command(service, "batch", "folder", "-o", "out.jsonl")

    assert 1 == status
    assert "cannot read row 1, a.heic: is HEIC: pip install pillow-heif" in err.splitlines()[0]


def test_videos_of_a_folder_are_scored(command, service, tmp_path):
    """As files, with their captions."""
    folder_of(tmp_path, a_mp4=MP4, a_txt=b"a cat jumps")
    status, _, _ = command(service, "batch", "folder", "-o", "out.jsonl")

    assert 0 == status
    assert ["a cat jumps"] == [item["prompt"] for item in service.sent[0]["items"]]


def test_a_url_in_a_table_is_not_requested(command, service, written, tmp_path):
    """A table of others could name any address; the error says what to do."""
    status, _, err = command(
        service, "batch", written([{"image": URL, "prompt": "a square"}]), "-o", "out.jsonl"
    )
    [line] = lines(tmp_path / "out.jsonl")

    assert 1 == status
    assert "column image is a URL: download it" in line["errors"]["vqascore"]["detail"]
    assert "column image is a URL: download it" in err


def test_the_first_rows_that_cannot_be_read_are_named(command, service, written):
    """Five of them, and how many more there are."""
    rows = [{"image": f"{n}.png", "prompt": "a square"} for n in range(7)]
    _, _, err = command(service, "batch", written(rows), "-o", "out.jsonl", "-m", "vqascore")
    said = err.splitlines()

    assert [f"cannot read row {n + 1}, {n}.png: no such file" for n in range(5)] == said[:5]
    assert said[5].startswith("and 2 more rows")


@pytest.mark.parametrize("name", ["score", "batch", "health"])
def test_a_key_that_no_header_can_hold_is_one_line_without_it(command, service, monkeypatch, name):
    """Status 2, and no request; the results are not begun."""
    monkeypatch.setenv("SCOREGATE_API_KEY", "sk-secret\n")
    given = {"score": ["p.png", "-p", "x"], "batch": ["rows.jsonl", "-o", "out.jsonl"], "health": []}
    status, out, err = command(service, name, *given[name])

    assert (2, "", []) == (status, out, service.sent)
    assert [
        "scoregate: SCOREGATE_API_KEY must have visible ASCII characters only, no spaces and no line break"
    ] == (err.splitlines())
    assert not Path("out.jsonl").exists()


def test_a_key_that_is_missing_is_named(command):
    """With the variable for it."""
    status, _, err = command(lambda request: problem(401, "unauthorized"), "score", "p.png", "-p", "a square")

    assert 2 == status
    assert ["scoregate: unauthorized: it is unauthorized; set SCOREGATE_API_KEY, or --api-key"] == (
        err.splitlines()
    )


@pytest.mark.parametrize("name", ["score", "rank", "batch"])
def test_files_that_a_folder_leaves_out_are_one_line(command, service, tmp_path, name):
    """Pictures of rare suffixes are taken; hidden files are not counted."""
    folder = folder_of(tmp_path, a_jpe=png(), b_jfif=png(), c_psd=b"8BPS", d_svg=b"<svg/>")
    (folder / ".DS_Store").touch()
    more = ("-o", "out.jsonl") if name == "batch" else ()
    status, _, err = command(service, name, "folder", "-p", "a square", *more)

    assert 0 == status
    assert 2 == len(service.sent[0].get("items", service.sent[0].get("images")))
    assert ["files that are no pictures, left out: 2 (c.psd, d.svg)"] == [
        line for line in err.splitlines() if "left out" in line
    ]


def test_prompts_in_names_are_scored_and_reproduced(command, service, tmp_path):
    """The manifest has the expression."""
    folder_of(tmp_path, a_red_cube_png=png())
    (tmp_path / "folder" / "a.red.cube.png").rename(tmp_path / "folder" / "1_a_red_cube.png")
    expression = ("--prompt-from-name", r"\d_(.*)")
    status, _, _ = command(service, "batch", "folder", *expression, "-o", "out.jsonl")
    again, _, _ = command(service, "reproduce", "out.jsonl.manifest.json", "--json")

    assert (0, 0) == (status, again)
    assert ["a red cube"] * 2 == [item["prompt"] for sent in service.sent for item in sent["items"]]


def test_one_picture_of_samples_is_scored_and_reproduced(command, service, tmp_path):
    """The manifest has the part."""
    tar_of(tmp_path / "s.tar", {"a.left.png": png("red"), "a.right.png": png(), "a.txt": b"a square"})
    status, _, _ = command(service, "batch", "s.tar", "--image-part", "left", "-o", "out.jsonl")
    again, _, _ = command(service, "reproduce", "out.jsonl.manifest.json", "--json")

    assert (0, 0) == (status, again)
    assert 2 == len(service.sent)


WRONG = {
    "--prompt-from-name: no regular expression": ("folder", "--prompt-from-name", "("),
    "--prompt and --prompt-from-name: give one": ("folder", "--prompt-from-name", ".", "-p", "a"),
    "--no-prompt reads no prompts": ("folder", "--prompt-from-name", ".", "--no-prompt"),
    "--prompt-from-name is for a folder of pictures alone": ("s.tar", "--prompt-from-name", "."),
    "--image-part is for the pictures in tar files": ("folder", "--image-part", "left", "-p", "a"),
}


@pytest.mark.parametrize(("words", "given"), WRONG.items())
def test_arguments_of_names_that_do_not_fit_are_one_line(command, service, tmp_path, words, given):
    """Nothing is scored."""
    folder_of(tmp_path, a_png=png())
    tar_of(tmp_path / "s.tar", {"a.png": png(), "a.txt": b"a"})
    status, _, err = command(service, "batch", *given, "-o", "out.jsonl")

    assert (2, []) == (status, service.sent)
    assert words in err
