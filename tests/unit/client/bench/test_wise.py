"""`scoregate bench wise` and `wise_verified`: weighted means of categories, from given grades."""

import json
from random import Random

import pytest

CATEGORIES = ("Cultural knowledge", "time", "Space", "Biology", "Physical Knowledge", "Chemistry")
SHORT = ("culture", "time", "space", "biology", "physics", "chemistry")
SHARES = {"wise": (0.4, 0.167, 0.133, 0.1, 0.1, 0.1), "wise_verified": (0.4, 0.12, 0.12, 0.12, 0.12, 0.12)}
GRADES = {"wise": ("consistency", "realism", "aesthetic_quality"), "wise_verified": ("score",)}


@pytest.fixture
def data(tmp_path):
    """The authors' folder: two files of prompts, all of them again, and rewritten ones."""
    rows = [
        {
            "Prompt": f"p {id}",
            "Explanation": "e",
            "Category": CATEGORIES[(id if id < 50 else 0) % 6],
            "prompt_id": id,
        }
        for id in range(1, 60)
    ]
    folder = tmp_path / "data"
    folder.mkdir()
    files = {"a": rows[:20], "b": rows[20:], "merge": rows, "a_rewrite": rows[:1]}
    for name, each in files.items():
        (folder / f"{name}.json").write_text(json.dumps(each), "utf-8")
    return folder, {row["prompt_id"]: SHORT[CATEGORIES.index(row["Category"])] for row in rows}


@pytest.fixture
def graded(data, tmp_path):
    """The authors' folder of grades of a benchmark, in two files, and the score of each prompt."""

    def write(name):
        random, scores, rows = Random(9), {}, []
        for id in data[1]:
            grades = [random.randint(0, 2 if name == "wise" else 1) for _ in GRADES[name]]
            rows.append({"prompt_id": id, "Subcategory": "x", **dict(zip(GRADES[name], grades, strict=True))})
            scores[id] = grades[0]
            if name == "wise":
                scores[id] = (0.7 * grades[0] + 0.2 * grades[1] + 0.1 * grades[2]) / 2
        (tmp_path / "graded").mkdir()
        for part, some in {"a_scores": rows[:30], "b": rows[30:]}.items():
            text = "".join(json.dumps(row) + "\n" for row in some)
            (tmp_path / "graded" / f"{part}_results.jsonl").write_text(text, "utf-8")
        return tmp_path / "graded", scores

    return write


@pytest.mark.parametrize("name", SHARES)
def test_the_whole_is_the_weighted_mean_of_six_categories(bench, data, graded, name):
    """A category has the mean over its prompts."""
    (folder, categories), (answers, scores) = data, graded(name)
    of_category = {}
    for id, category in categories.items():
        of_category.setdefault(category, []).append(scores[id])
    means = {category: sum(each) / len(each) for category, each in of_category.items()}
    found = bench(name, folder, f"a={answers}", "--bootstrap", 20)["generators"][0]

    whole = sum(share * means[category] for share, category in zip(SHARES[name], SHORT, strict=True))

    assert {**means, "overall": whole} == pytest.approx(found["mean"], abs=1e-6)
    assert found["interval"]["overall"][0] < whole < found["interval"]["overall"][1]
    assert "59 of 1000 prompts" in found["caution"]


def test_without_all_categories_there_is_no_whole(bench, data, written):
    """From a table of answers."""
    rows = [{"item": id, "answer": 1} for id, category in data[1].items() if category != "time"]
    found = bench("wise_verified", data[0], f"a={written(rows, 'a.csv')}", "--bootstrap", 0)

    assert dict.fromkeys((name for name in SHORT if name != "time"), 1) == found["generators"][0]["mean"]


@pytest.mark.parametrize(
    ("name", "grades", "line"),
    [
        ("wise", {"consistency": 3, "realism": 0, "aesthetic_quality": 0}, "3 is not from 0 to 2"),
        ("wise", {"consistency": 1, "realism": 0}, "no column 'aesthetic_quality'"),
        ("wise_verified", {"score": 0.5}, "0.5 is not 0 or 1"),
        ("wise_verified", {"score": 1, "prompt_id": 99}, "the benchmark has no item 99"),
    ],
)
def test_grades_that_are_none_are_refused(refused, data, written, name, grades, line):
    """Also by the authors' code, which skips them."""
    file = written([{"prompt_id": 1, **grades}], "a_results.jsonl")

    assert line in refused("bench", name, data[0], f"a={file}")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"prompt_id": 1, "Category": "art"}], "'art' is no category"),
        ([{"prompt_id": 1, "Category": "time"}] * 2, "two prompts have the prompt_id 1"),
        (None, "there is no file of prompts"),
    ],
)
def test_prompts_of_no_use_are_refused(refused, tmp_path, rows, line):
    """Of an unknown category, twice, or none."""
    if rows:
        text = json.dumps([{"Prompt": "p", "Explanation": "e", **row} for row in rows])
        (tmp_path / "d.json").write_text(text, "utf-8")

    assert line in refused("bench", "wise", tmp_path, "a=a.csv")
