"""`scoregate bench kris`: points of edits by dimension of knowledge, from given grades."""

import json
from random import Random
from statistics import fmean

import pytest

from scoregate.cli.main import main

# The dimension, the kind of knowledge and the number of grades of some categories.
CATEGORIES = {
    "color_change": ("attribute perception", "factual", 3),
    "viewpoint_change": ("spatial perception", "factual", 3),
    "temporal_prediction": ("temporal prediction", "factual", 3),
    "humanities": ("social science", "conceptual", 4),
    "physics": ("natural science", "conceptual", 4),
    "medicine": ("natural science", "conceptual", 4),
    "rule-based_reasoning": ("logical reasoning", "procedural", 4),
    "multi-element_composition": ("instruction decomposition", "procedural", 3),
}
NAMES = {"consistency": "VC", "quality": "VQ", "instruction": "IF", "knowledge": "KP"}


@pytest.fixture
def data(tmp_path):
    """The authors' folder, with a category that is none of theirs."""
    for category in (*CATEGORIES, "art"):
        series = category in ("temporal_prediction", "multi-element_composition")
        edits = {
            f"{id}": {
                "ori_img": [f"{id}-1.jpg", f"{id}-2.jpg"] if series else f"{id}.jpg",
                "gt_img": f"{id}_gt.jpg" if category == "viewpoint_change" else "",
                "ins_en": f"edit {id}",
                "explain_en": "so",
            }
            for id in range(1, len(category))
        }
        (tmp_path / "data" / category).mkdir(parents=True)
        (tmp_path / "data" / category / "annotation.json").write_text(json.dumps(edits), "utf-8")
    return tmp_path / "data"


@pytest.fixture
def grades(data, tmp_path):
    """The authors' folder of grades, and the same by category and edit; one edit lacks a grade."""
    random, found = Random(10), {}
    for category, (_, _, count) in CATEGORIES.items():
        edits = {}
        for id in range(1, len(category)):
            given = {name: random.randint(1, 5) for name in [*NAMES][:count]}
            found[category, id] = given
            edits[f"{id}"] = {f"{name}_score": grade for name, grade in given.items()} | {"explain": "x"}
        if category == "physics":
            edits["2"]["knowledge_score"] = None
            del found[category, 2]
        (tmp_path / "a" / category).mkdir(parents=True)
        (tmp_path / "a" / category / "metrics.json").write_text(json.dumps(edits), "utf-8")
    return tmp_path / "a", found


def test_points_are_means_over_all_grades(bench, data, grades):
    """Of each kind by dimension, and of all by dimension, by knowledge and over the whole."""
    folder, given = grades
    points = {}
    for (category, _), each in given.items():
        dimension, knowledge, _ = CATEGORIES[category]
        for name, grade in each.items():
            for key in ("overall", knowledge, ("average", dimension), (NAMES[name], dimension)):
                points.setdefault(key, []).append((grade - 1) * 25)
    found = bench("kris", data, f"a={folder}", "--bootstrap", 0)
    [row] = found["generators"]
    tables = {
        (table, each["figure"]): each["mean"]["a"]
        for table in ("average", *NAMES.values())
        for each in found[table]
    }

    assert {key: fmean(each) for key, each in points.items()} == pytest.approx(row["mean"] | tables, abs=1e-6)
    assert "left out without all answers: 1" in row["caution"]


def test_edits_without_grades_or_of_other_data_are_counted(bench, data, grades):
    """An edit that is null lacks its grades, and one that the data has not counts for nothing."""
    folder, _ = grades
    file = folder / "color_change" / "metrics.json"
    given = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(given | {"3": None, "99": given["1"]}), "utf-8")
    [row] = bench("kris", data, f"a={folder}", "--bootstrap", 0)["generators"]

    assert "left out without all answers: 2; grades of other edits: 1" in row["caution"]
    assert "unverified" in row["caution"]


def test_a_generator_gets_pictures_and_not_the_right_result(capsys, data):
    """One picture to edit, or several; the right result is for the judge alone."""
    assert 0 == main(["bench", "kris", str(data), "--prompts"])
    lines = {line["id"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    view, frames = lines["viewpoint_change/3"], lines["temporal_prediction/3"]

    assert not any(id.startswith("art") for id in lines)
    assert f"{data}/viewpoint_change/3.jpg" == view["source"]
    assert [f"{data}/temporal_prediction/3-{n}.jpg" for n in (1, 2)] == frames["references"]
    assert "references" not in view


@pytest.mark.parametrize(
    ("grade", "line"),
    [(6, "6 is not from 1 to 5"), ("good", "'good'")],
)
def test_a_grade_that_is_none_is_refused(refused, data, grades, grade, line):
    """With its edit."""
    file = grades[0] / "humanities" / "metrics.json"
    content = json.loads(file.read_text("utf-8"))
    content["3"]["quality_score"] = grade
    file.write_text(json.dumps(content), "utf-8")

    assert f"edit 3: not of the form of KRIS-Bench ({line}" in refused(
        "bench", "kris", data, f"a={grades[0]}"
    )


def test_data_of_another_form_are_refused(refused, data, tmp_path):
    """Without edits, with a list of them, or without a field."""
    file = data / "humanities" / "annotation.json"
    (tmp_path / "empty").mkdir()
    file.write_text('{"1": {"ori_img": "1.jpg", "ins_en": "x", "gt_img": ""}}', "utf-8")
    missing = refused("bench", "kris", data, "a=a.csv")
    file.write_text("[]", "utf-8")

    assert "humanities, edit 1: there is no explain_en" in missing
    assert "annotation.json: not an object of edits" in refused("bench", "kris", data, "a=a.csv")
    assert "there is no file CATEGORY/annotation.json" in refused("bench", "kris", tmp_path / "empty", "a=a")
