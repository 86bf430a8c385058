"""`scoregate bench` from pictures to a table by a judge, with models in this process."""

import json

import pytest

from scoregate.runs.results import lines_of
from tests.app.client.test_benchmarks import jsonl, profile, table
from tests.support.pictures import png
from tests.unit.client.cli.conftest import run

__all__ = ["profile", "run"]


@pytest.fixture
def gedit(tmp_path):
    """One edit of GEdit, and a folder with its picture before and after."""
    row = {"task_type": "t", "key": "k", "instruction": "make it red", "instruction_language": "en"}
    jsonl(tmp_path / "data.jsonl", row)
    folder = tmp_path / "out" / "fullset" / "t" / "en"
    folder.mkdir(parents=True)
    for name, colour in (("k", "red"), ("k_SRCIMG", "white")):
        (folder / f"{name}.png").write_bytes(png(colour))
    return folder


def test_an_edit_is_graded_with_the_picture_before_it(run, gedit, tmp_path):
    """By the rubric, whose outputs give the figures; the picture before the edit is none of the generator."""
    [row] = table(run, "gedit", "data.jsonl", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "gedit-a.jsonl")
    grades = {name: each["value"] for name, each in line["details"]["judge"]["outputs"].items()}

    assert min(grades["success"], grades["restraint"]) == row["mean"]["G_SC"]
    assert min(grades["nature"], grades["clean"]) == row["mean"]["G_PQ"]
    assert line["scores"]["judge"] == pytest.approx(row["mean"]["G_O"])
    assert "the questions' words are those of the rubric gedit" in row["caution"]
    assert "pictures of no prompt" not in row["caution"]


def test_pictures_before_edits_may_be_in_a_folder_of_their_own(run, gedit, tmp_path):
    """For several generators; without one an edit is not graded."""
    (tmp_path / "before" / "fullset" / "t" / "en").mkdir(parents=True)
    (gedit / "k_SRCIMG.png").rename(tmp_path / "before" / "fullset" / "t" / "en" / "k_SRCIMG.png")
    done = run("bench", "gedit", "data.jsonl", "a=out")
    [row] = table(run, "gedit", "data.jsonl", "a=out", "--sources", "before")[0]["generators"]

    assert (2, True) == (done.returncode, "column source: " in done.stderr)
    assert 1 == row["pictures"]


def test_a_rubric_on_another_scale_is_refused(run, gedit, tmp_path, monkeypatch):
    """Its outputs have the names of the benchmark's, and grades outside of its range."""
    (tmp_path / "rubrics").mkdir()
    outputs = "".join(
        f"[calls.outputs.{name}]\nrange = [60, 90]\n" for name in ("success", "restraint", "nature", "clean")
    )
    text = f"score = 'success'\n[[calls]]\ninstructions = 'x'\nimages = ['source', 'candidate']\n{outputs}"
    (tmp_path / "rubrics" / "mine.toml").write_text(text, "utf-8")
    monkeypatch.setenv("SCOREGATE_JUDGE__RUBRICS", json.dumps([str(tmp_path / "rubrics")]))
    done = run("bench", "gedit", "data.jsonl", "a=out", "--rubric", "mine")

    assert (2, True) == (done.returncode, "item t/en/k, rubric mine: " in done.stderr)
    assert "is not from 0 to 10" in done.stderr


def test_an_edit_is_graded_by_the_points_of_its_type(run, tmp_path):
    """They are texts of the item; `{type}` in the name of a rubric stands for the type."""
    edit = {"id": "x/1.png", "prompt": "as a comic", "edit_type": "style"}
    jsonl(tmp_path / "data.json", {"9": edit})
    for name in ("before/x/1", "out/9"):
        (tmp_path / f"{name}.png").parent.mkdir(parents=True)
        (tmp_path / f"{name}.png").write_bytes(png())
    given = ("imgedit", "data.json", "a=out", "--sources", "before")
    [row] = table(run, *given)[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "imgedit-a.jsonl")
    done = run("bench", *given, "--rubric", "mine_{type}", "--out", "other")
    [other] = lines_of(tmp_path / "other" / "imgedit-a.jsonl")

    assert row["mean"]["overall"] == round(line["scores"]["judge"], 2)
    assert (
        "compliance: the whole picture has the wanted style."
        in line["details"]["judge"]["calls"][0]["question"]
    )
    assert (2, "mine_style") == (done.returncode, other["own_options"]["judge"]["rubric"])


@pytest.mark.parametrize("name", ["wise", "wise_verified"])
def test_a_picture_is_graded_by_what_its_prompt_stands_for(run, tmp_path, name):
    """The explanation of the data is a text of the item; the figure is the rubric's formula."""
    prompt = {"prompt_id": 7, "Prompt": "the feast", "Explanation": "eggs", "Category": "time"}
    jsonl(tmp_path / "data.json", [prompt])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "7.png").write_bytes(png())
    [row] = table(run, name, "data.json", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / f"{name}-a.jsonl")

    assert line["scores"]["judge"] == pytest.approx(row["mean"]["time"])
    assert 'What it stands for: "eggs"' in line["details"]["judge"]["calls"][0]["question"]


@pytest.mark.parametrize(
    ("category", "given", "rubric", "said"),
    [
        ("color_change", "1.png", "kris_edit", "Picture 1 was edited into picture 2"),
        ("physics", "1.png", "kris_knowledge", 'know for it: "it falls"'),
        ("viewpoint_change", "1.png", "kris_view", "Picture 2 shows the right result"),
        ("temporal_prediction", ["1.png", "2.png"], "kris_series", "Pictures 1 to 2 are given"),
    ],
)
def test_edits_are_graded_with_the_pictures_of_their_category(run, tmp_path, category, given, rubric, said):
    """The picture before, the right result, or a series; the figure is the mean of the grades' points."""
    edit = {"ori_img": given, "gt_img": "gt.png", "ins_en": "next", "explain_en": "it falls"}
    jsonl(tmp_path / "data" / category / "annotation.json", {"7": edit})
    (tmp_path / "out" / category).mkdir(parents=True)
    for name in (f"out/{category}/7", *(f"data/{category}/{each}" for each in ("1", "2", "gt"))):
        (tmp_path / f"{name}.png").write_bytes(png())
    [row] = table(run, "kris", "data", "a=out")[0]["generators"]
    [line] = lines_of(tmp_path / "out" / "kris-a.jsonl")

    assert rubric == line["details"]["judge"]["rubric"]
    assert (line["scores"]["judge"] - 1) * 25 == pytest.approx(row["mean"]["overall"])
    assert said in line["details"]["judge"]["calls"][0]["question"]
