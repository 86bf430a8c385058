"""`scoregate bench gedit` and `imgedit`: means by task or type of edits, from given grades."""

import json
from math import sqrt
from random import Random
from statistics import fmean

import pytest

from scoregate.cli.main import main

TASKS = ("color_alter", "style_change", "subject-add")
GRADES = ("success", "restraint", "nature", "clean")


@pytest.fixture
def gedit(written):
    """The data in both languages, with edits that are not in the intersection; grades of all in English."""
    random, rows, grades = Random(7), [], {}
    for number in range(14):
        for language in ("en", "cn"):
            task, key = TASKS[number * number % 3], f"k{number}{language}"
            rows.append({"task_type": task, "key": key, "instruction": f"edit {number}"})
            rows[-1] |= {"instruction_language": language, "Intersection_exist": bool(number % 4)}
            if language == "en":
                grades[task, key] = [random.randint(0, 10) for _ in GRADES]
    return written(rows, "gedit.jsonl"), grades


def answered(grades):
    """A row for each grade."""
    return [
        {"item": f"{task}/en/{key}", "question": name, "answer": grade}
        for (task, key), each in grades.items()
        for name, grade in zip(GRADES, each, strict=True)
    ]


def combined(grades):
    """The authors' combined table, which has the smaller grades, and those of the other language."""
    return [
        {
            "edited_image": f"/r/a/fullset/{task}/{language}/{key}.png",
            "instruction": "x",
            "sementics_score": min(a, b),
            "quality_score": float(min(c, d)),
            "instruction_language": language,
        }
        for (task, key), (a, b, c, d) in grades.items()
        for language in ("en", "cn")
    ]


def shown(found):
    """The figures, and those of tasks, of the generator *a*."""
    of_tasks = {
        table: {row["figure"]: row["mean"]["a"] for row in found[table]} for table in ("SC", "PQ", "O")
    }
    return found["generators"][0]["mean"], of_tasks


def expected(grades):
    """The same, by the authors' formula."""
    triples = {}
    for (task, _), (a, b, c, d) in grades.items():
        triples.setdefault(task, []).append((min(a, b), min(c, d), sqrt(min(a, b) * min(c, d))))
    of_tasks = {
        table: {task: fmean(each[place] for each in of) for task, of in triples.items()}
        for place, table in enumerate(("SC", "PQ", "O"))
    }
    return {f"G_{table}": fmean(of.values()) for table, of in of_tasks.items()}, of_tasks


def test_equal_grades_have_no_interval(bench, gedit, written):
    """Not one without a width: five grades of 7 are no proof of 7."""
    data, grades = gedit
    seven = written(answered(dict.fromkeys(grades, [7] * 4)), "a.csv")
    found = bench("gedit", data, f"a={seven}", f"b={written(answered(grades), 'b.csv')}", "--bootstrap", 20)
    equal, varied = found["generators"]

    assert (7, None) == (equal["mean"]["G_O"], equal.get("interval"))
    assert {"G_SC", "G_PQ", "G_O"} <= varied["interval"].keys()
    assert all(low < high for low, high in varied["interval"].values())


@pytest.mark.parametrize("form", [answered, combined])
def test_an_edit_has_the_root_of_the_smaller_grades(bench, gedit, written, form):
    """A task has the mean over its edits, and a figure the mean over tasks."""
    data, grades = gedit
    found = bench("gedit", data, f"a={written(form(grades), 'a.csv')}", "--bootstrap", 10)
    (mean, of_tasks), (figures, tasks) = shown(found), expected(grades)

    assert figures == pytest.approx(mean, abs=1e-6)
    assert tasks == {table: pytest.approx(each, abs=1e-6) for table, each in of_tasks.items()}
    assert {"G_SC", "G_PQ", "G_O"} == found["generators"][0]["interval"].keys()
    caution = found["generators"][0]["caution"]
    assert ("14 of 606 prompts" in caution, form is combined) == (
        True,
        "scores of other edits: 14" in caution,
    )


def test_a_task_of_one_edit_counts_in_the_interval_of_the_mean(bench, written):
    """When that edit is drawn: the interval would be that of other tasks otherwise."""
    grades = {("a", f"{number}"): [10] * 4 for number in range(9)} | {("b", "9"): [0] * 4}
    rows = [
        {"task_type": task, "key": key, "instruction": "x", "instruction_language": "en"}
        for task, key in grades
    ]
    files = written(rows, "d.jsonl"), f"a={written(answered(grades), 'a.csv')}"
    [row] = bench("gedit", *files, "--bootstrap", 100)["generators"]

    assert (5, [5, 10]) == (row["mean"]["G_O"], row["interval"]["G_O"])


def test_the_intersection_has_the_edits_that_all_generators_made(bench, gedit, written):
    """By a column of the data."""
    data, grades = gedit
    kept = {key: each for key, each in grades.items() if int(key[1][1:-2]) % 4}
    file = written(combined(grades), "a.csv")
    mean, _ = shown(bench("gedit", data, f"a={file}", "--intersection", "--bootstrap", 0))

    assert expected(kept)[0] == pytest.approx(mean, abs=1e-6)


def test_data_of_no_use_are_refused(refused, written):
    """Without the language, with one edit twice, or with a truth value that is none."""
    row = {"task_type": "t", "key": "k", "instruction": "x", "instruction_language": "en"}
    one, two = written([row | {"Intersection_exist": "so"}], "one.csv"), written([row, row], "two.csv")

    assert "no edit has the language cn" in refused("bench", "gedit", one, "a=a.csv", "--language", "cn")
    assert "two edits are t/en/k" in refused("bench", "gedit", two, "a=a.csv")
    assert "'so' is not true or false" in refused("bench", "gedit", one, "a=a.csv", "--intersection")


def test_a_generator_gets_the_edit_and_its_picture(capsys, gedit):
    """In the authors' folders; the rubric is named by an argument, and not by an option of the metric."""
    assert 0 == main(["bench", "gedit", gedit[0], "--prompts", "--language", "cn"])
    line = json.loads(capsys.readouterr().out.splitlines()[0])

    assert {
        "id": "color_alter/cn/k0cn",
        "prompt": "edit 0",
        "files": ["fullset/color_alter/cn/k0cn.png"],
        "source": "fullset/color_alter/cn/k0cn_SRCIMG.png",
        "seeds": [0],
    } == line
    assert 2 == main(["bench", "gedit", gedit[0], "a=b", "--option", "judge.rubric=mine"])
    assert "name the rubric by --rubric" in capsys.readouterr().err


TYPES = ("add", "style", "extract")
LINES = "Brief reasoning: it is: so\nPrompt Compliance: {}\nVisual & Fine Detail: {}\n Quality: {} "


@pytest.fixture
def imgedit(tmp_path):
    """The data, and grades of all edits."""
    random, edits, grades = Random(8), {}, {}
    for number in range(20):
        edits[f"{number}"] = {"id": f"d/{number}.jpg", "prompt": "p", "edit_type": TYPES[number * number % 3]}
        grades[f"{number}"] = [random.randint(1, 5) for _ in range(3)]
    file = tmp_path / "basic_edit.json"
    file.write_text(json.dumps(edits), "utf-8")
    return str(file), edits, grades


def by_type(edits, grades, digits):
    """The means of types over the rounded means of edits."""
    found = {}
    for key, each in grades.items():
        found.setdefault(edits[key]["edit_type"], []).append(round(sum(each) / len(each), digits))
    return {name: sum(each) / len(each) for name, each in found.items()}


@pytest.mark.parametrize(("given", "digits"), [([], 2), (["--exact"], 12)])
def test_a_type_has_the_mean_of_its_edits_whose_means_are_rounded(bench, imgedit, written, given, digits):
    """From a table; the whole is the mean over types."""
    data, edits, grades = imgedit
    names = ("compliance", "appearance", "detail")
    rows = [
        {"item": key, "question": name, "answer": grade}
        for key, each in grades.items()
        for name, grade in zip(names, each, strict=True)
    ]
    found = bench("imgedit", data, f"a={written(rows, 'a.csv')}", "--bootstrap", 0, *given)
    of_types = by_type(edits, grades, digits)

    assert of_types == pytest.approx({row["figure"]: row["mean"]["a"] for row in found["types"]}, abs=1e-6)
    [row] = found["generators"]
    assert fmean(of_types.values()) == pytest.approx(row["mean"]["overall"], abs=1e-6)


def test_the_authors_answers_are_read_line_by_line(bench, imgedit, tmp_path):
    """One without three grades is without answers, and a caution counts it."""
    data, edits, grades = imgedit
    texts = {key: LINES.format(*each) for key, each in grades.items()}
    texts |= {"1": "A: 4\nB: 5", "2": {"error": "none"}, "3": "A: 4\nB: 5\nC: 6", "x": "A: 1"}
    (tmp_path / "result.json").write_text(json.dumps(texts), "utf-8")
    found = bench("imgedit", data, f"a={tmp_path}/result.json", "--bootstrap", 0)
    kept = {key: each for key, each in grades.items() if key not in ("1", "2", "3")}

    assert by_type(edits, kept, 2) == pytest.approx(
        {row["figure"]: row["mean"]["a"] for row in found["types"]}
    )
    for part in ("17 of 737 prompts", "left out without all answers: 3", "grades of other edits: 1"):
        assert part in found["generators"][0]["caution"]


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        ({"edit_type": "morph", "id": "a.jpg"}, "edit 7: no id, prompt and known edit_type ('morph')"),
        ({"edit_type": "add"}, "edit 7: no id, prompt and known edit_type ('id')"),
        ({"edit_type": "add", "id": "../a.jpg"}, "'../a.jpg' is no path below the folder of the pictures"),
        ({"edit_type": "add", "id": "/a.jpg"}, "'/a.jpg' is no path below the folder of the pictures"),
    ],
)
def test_edits_that_cannot_be_made_are_refused(refused, tmp_path, edit, line):
    """Of an unknown type, without a picture, or with one that is elsewhere."""
    (tmp_path / "data.json").write_text(json.dumps({"7": {"prompt": "p", **edit}}), "utf-8")

    assert line in refused("bench", "imgedit", f"{tmp_path}/data.json", "a=a.csv")


def test_data_without_edits_are_refused(refused, tmp_path):
    """A list of edits has no keys."""
    (tmp_path / "data.json").write_text("[]", "utf-8")

    assert "not an object of edits" in refused("bench", "imgedit", f"{tmp_path}/data.json", "a=a.csv")
