"""Mistakes in the call's files are found before models are loaded, which takes seconds to minutes."""

import json

import pytest

from tests.support.pictures import png
from tests.support.shards import tar_of
from tests.unit.client.bench.test_dpg import row

OUT = ("-o", "out.jsonl")
MODELS = "no/such.toml"  # the file is read before any model is loaded


@pytest.fixture
def refused(run, tmp_path):
    """The error of the command beside data sets with mistakes; models that there are not are not missed."""
    for name in ("photos", "others"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cat.png").write_bytes(png())
    (tmp_path / "empty").mkdir()
    line = json.dumps({"image": "photos/cat.png", "prompt": "a cat"})
    texts = {"rows.jsonl": line, "none.jsonl": "", "broken.jsonl": "{", "dogs.json": '{"dog": "a dog"}'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    tar_of(tmp_path / "s.tar", {"1.png": png(), "1.json": b'{"text": "a cat"}'})
    heads = row("x", 1)
    cells = [",".join(f'"{cell}"' for cell in each) for each in (heads, heads.values())]
    (tmp_path / "dpg.csv").write_text("\n".join(cells), "utf-8")
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "x.png").write_bytes(png())

    def refused(*arguments):
        done = run(*arguments, "--local", MODELS)
        assert (2, "", False) == (done.returncode, done.stdout, MODELS in done.stderr)
        return done.stderr

    return refused


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("batch", "rows.jsonl", *OUT, "--image-column", "file"), "no column 'file'"),
        (("batch", "rows.jsonl", *OUT, "--prompt-column", "text"), "no column 'text'"),
        (("batch", "s.tar", *OUT), "no column 'prompt'"),
        (("batch", "s.tar", "-o", "out"), "no column 'prompt'"),
        (("batch", "none.jsonl", *OUT), "none.jsonl: no rows"),
        (("batch", "broken.jsonl", *OUT), "none of the first rows can be read"),
        (("batch", "empty", *OUT), "empty: no pictures"),
        (("batch", "gone.jsonl", *OUT), "gone.jsonl: no such file"),
        (
            ("batch", "photos", *OUT, "--prompts", "dogs.json"),
            "dogs.json has no prompt of a picture in photos: it has those of dog, and the first",
        ),
        (("report", "rows.jsonl", "-o", "page.html", "--prompt-column", "text"), "no column 'text'"),
        (("versus", "photos", "others", "--prompts", "dogs.json", "-o", "scores"), "no prompt of a picture"),
        (("versus", "photos", "empty", "-p", "a cat", "-o", "scores"), "empty: no pictures"),
        (("versus", "photos", "others", "-p", "a cat", "-o", "scores", "--by", "tag"), "column"),
        (("reproduce", "gone.manifest.json"), "gone.manifest.json"),
        (("bench", "dpg", "dpg.csv", "a=cats", "b=gone.jsonl", "--first-row"), "gone.jsonl"),
        (("bench", "dpg", "dpg.csv", "a=cats", "b=broken.jsonl", "--first-row"), "broken.jsonl"),
        (("score", "gone.png", "-p", "a cat"), "gone.png"),
        (("rank", "-p", "a cat", "gone.png"), "gone.png"),
        (("decide", "gone.png", "-p", "a cat"), "gone.png"),
    ],
)
def test_a_mistake_is_found_before_models_are_loaded(refused, arguments, said):
    """Of each command that takes `--local`."""
    assert said in refused(*arguments)
