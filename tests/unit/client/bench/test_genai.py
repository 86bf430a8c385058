"""`scoregate bench genai`: ratings of pictures of several generators, by skill."""

import json
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest

from scoregate.errors import ColumnError
from scoregate.evaluation.agreement import best_of
from tests.unit.client.evaluation.conftest import RELEASED

RATINGS = {
    "00001": {"A": [5, 5, 4], "B": [1, 2, 3]},
    "00002": {"A": [3, 3, 3], "B": [4, 4, 4]},
    "00010": {"A": [1, 1, 1], "B": [5, 5, 5]},
}
SKILLS = {"attribute": [1, 2], "scene": [2], "negation": [10], "counting": [1]}


@pytest.fixture
def released(tmp_path):
    """The benchmark's two files, in its own shape."""
    prompts = {
        item: {"id": item, "prompt": f"prompt {item}", "models": models} for item, models in RATINGS.items()
    }
    for name, content in (("ratings.json", prompts), ("skills.json", SKILLS)):
        (tmp_path / name).write_text(json.dumps(content), "utf-8")
    return tmp_path / "ratings.json", "--skills", tmp_path / "skills.json"


@pytest.fixture
def scores(written):
    """A metric that gives the mean rating, in another order of rows."""
    return written(
        [
            {"id": item, "model": model, "m": sum(ratings) / 3}
            for item, models in RATINGS.items()
            for model, ratings in models.items()
        ][::-1],
        "scores.csv",
    )


def test_the_published_prompts_have_the_figures_of_a_second_implementation(bench):
    """Pearson, Kendall, accuracy with ties, of 55 prompts and four generators."""
    first, second = bench("genai", RELEASED / "teaser.csv.gz")["metrics"]

    names = ("n", "pearson", "kendall", "accuracy", "epsilon")
    assert (220, 0.587601, 0.46322, 0.663138, 0) == pytest.approx([first[name] for name in names], abs=6e-7)
    assert (220, 0.159334, 0.108338, 0.49589, 0) == pytest.approx([second[name] for name in names], abs=6e-7)


def test_three_ratings_are_averaged_and_scores_join_by_prompt_and_generator(bench, released, scores):
    """A metric that is the mean rating agrees in every pair."""
    found = bench("genai", *released, "--scores", scores)

    assert (3, 2) == (found["prompts"], found["generators"])
    [row] = found["metrics"]
    assert (6, 1, 1, 1) == pytest.approx((row["n"], row["pearson"], row["kendall"], row["accuracy"]))


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_a_table_may_have_several_ratings_in_a_cell(bench, written, released, scores, name):
    """A list, in CSV as JSON; the figures are those of the authors' file."""
    rows = [
        {"item": item, "model": model, "human": json.dumps(cell) if name.endswith(".csv") else cell}
        for item, models in RATINGS.items()
        for model, cell in models.items()
    ]
    of_table, of_file = (
        bench("genai", data, "--scores", scores)["metrics"] for data in (written(rows, name), released[0])
    )

    assert of_file == of_table


@pytest.mark.parametrize("item", [int, str])
def test_scores_join_by_items_with_and_without_leading_zeros(bench, written, released, item):
    """As the prompts of the file of skills do."""
    rows = [
        {"item": item(int(number)), "model": model, "m": sum(ratings)}
        for number, models in RATINGS.items()
        for model, ratings in models.items()
    ]
    [row] = bench("genai", *released, "--scores", written(rows))["metrics"]

    assert (6, 1) == pytest.approx((row["n"], row["pearson"]))


def test_a_cell_without_ratings_is_refused(refused, written):
    """With file, row and column."""
    rows = [{"item": 1, "model": "A", "human": ["good"], "m": 1}]

    said = refused("bench", "genai", written(rows, "t.jsonl"))

    assert "t.jsonl, row 1, column human, item 1, model A: ['good'] are no ratings" in said


LONG = [
    {"item": item, "model": model, "rater": rater, "human": rating, "m": sum(ratings) / 3}
    for item, models in RATINGS.items()
    for model, ratings in models.items()
    for rater, rating in enumerate(ratings)
]


def test_a_row_for_each_rating_is_one_picture_for_each_generator_and_item(bench, written, released, scores):
    """The figures are those of the authors' file; a column of raters is no metric."""
    found, of_file = bench("genai", written(LONG, "long.csv")), bench("genai", *released, "--scores", scores)

    assert (6, 18, 0) == (found["pictures"], found["ratings"], found["out_of_scale"])
    assert ["rater"] == found["left_out"]
    assert of_file["metrics"] == found["metrics"]
    assert of_file["best_of"] == found["best_of"]


def test_a_picture_with_two_scores_is_refused(bench, refused, written):
    """If the metric was named; else its column is left out, and the output says so."""
    rows = [row | {"n": row["m"], "m": place} for place, row in enumerate(LONG)]
    data = written(rows, "t.csv")

    said = refused("bench", "genai", data, "--metric", "m")
    assert "t.csv, column m: the rows of a picture have several" in said
    found = bench("genai", data)
    assert (["rater", "m"], ["n"]) == (found["left_out"], [row["metric"] for row in found["metrics"]])


def test_two_images_of_one_item_and_generator_are_two_pictures(bench, written):
    """A column `image` tells them apart."""
    rows = [row | {"image": place, "m": place} for place, row in enumerate(LONG)]

    assert (18, 18) == tuple(bench("genai", written(rows))[name] for name in ("pictures", "ratings"))


def test_a_rating_outside_the_scale_is_counted_and_left_out(bench, written, released):
    """As a 41 for a 4 in the authors' file."""
    rows = [row | {"human": 41} if row["human"] == 4 else row for row in LONG]
    data = written(rows, "t.csv")
    found, without = bench("genai", data, "--scale", "1:5"), bench("genai", data)
    of_people = {row["skill"]: row["mean"] for row in found["skills"] if row["metric"] == "human"}

    assert (4, 14, 0) == (found["out_of_scale"], found["ratings"], without["out_of_scale"])
    assert {"A": fmean([5, 3, 1]), "B": fmean([2, 5])} == pytest.approx(of_people["all"])


def test_items_that_differ_in_zeros_only_stay_two(bench, written, tmp_path):
    """In the user's own table 1 and 01 are two prompts, and scores and skills join them as they are."""
    rows = [
        {"item": item, "model": model, "human": place, "m": place}
        for place, (item, model) in enumerate((item, model) for item in ("1", "01", "2") for model in "AB")
    ]
    scores = [{"item": row["item"], "model": row["model"], "n": -row["m"]} for row in rows]
    skills = tmp_path / "skills.json"
    skills.write_text(json.dumps({"scene": ["01"]}), "utf-8")
    files = written(rows, "t.csv"), "--scores", written(scores, "s.csv"), "--skills", skills
    found = bench("genai", *files)

    assert (3, 6) == (found["prompts"], found["pictures"])
    assert {1, -1} == {round(row["pearson"], 9) for row in found["metrics"]}
    [scene] = [row for row in found["skills"] if (row["metric"], row["skill"]) == ("human", "scene")]
    assert {"A": 2, "B": 3} == scene["mean"]


def test_a_prompt_counts_in_each_of_its_skills(bench, released, scores):
    """Prompt 1 has a basic and an advanced skill, and is advanced; 2 is basic."""
    found = bench("genai", *released, "--scores", scores)["skills"]

    of_people = {row["skill"]: row for row in found if row["metric"] == "human"}
    assert ["attribute", "scene", "basic", "counting", "negation", "advanced", "all"] == list(of_people)
    assert {"A": fmean([14 / 3, 3]), "B": 3} == pytest.approx(of_people["attribute"]["mean"])
    assert {"A": 3, "B": 4} == pytest.approx(of_people["basic"]["mean"])
    assert {"A": fmean([14 / 3, 1]), "B": 3.5} == pytest.approx(of_people["advanced"]["mean"])
    assert (4, 2) == (of_people["attribute"]["pictures"], of_people["scene"]["pictures"])
    assert len(found) == 2 * len(of_people)


def test_skills_may_be_a_column(bench, written):
    """With basic and advanced as the data has them."""
    rows = [
        {"item": item, "model": model, "human": item + len(model), "m": item, "skills": skills}
        for item, skills in ((1, ["counting", "basic"]), (2, ["counting"]))
        for model in ("A", "BB")
    ]
    found = bench("genai", written(rows))["skills"]

    assert {"counting", "basic", "all"} == {row["skill"] for row in found}


def test_the_best_of_n_is_the_mean_over_all_choices():
    """Equal scores are picked equally often."""
    metric, human = [0.1, 0.5, 0.5, 0.9], [2.0, 5.0, 3.0, 1.0]
    found = best_of(metric, human, ["a"] * 4)

    for count, mean in found.means.items():
        picks = []
        for places in map(list, combinations(range(4), count)):
            best = np.array(metric)[places] == max(np.array(metric)[places])
            picks.append(np.array(human)[places][best].mean())
        assert fmean(picks) == pytest.approx(mean)
    assert 1 == best_of([*metric, 1.0], [*human, 5.0], [*"aaaa", "b"]).groups


def test_one_picture_of_each_prompt_gives_no_best_of_n():
    """There is nothing to pick from."""
    with pytest.raises(ColumnError, match="no group has two"):
        best_of([1.0, 2.0], [1.0, 2.0], ["a", "b"])


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"1": {"prompt": "x"}}, "prompt 1: there is no object `models`"),
        ({"1": {"models": {"A": ["good"]}}}, "item 1, model A: ['good'] are no ratings"),
        ({"1": {"models": {"A": []}}}, "item 1, model A: [] are no ratings"),
        ({}, "there is no prompt"),
        ("{", "not JSON"),
    ],
)
def test_ratings_that_cannot_be_read_are_refused(refused, tmp_path, content, line):
    """With the prompt and the generator."""
    file = tmp_path / "ratings.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    assert line in refused("bench", "genai", file)
