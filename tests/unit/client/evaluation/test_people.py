"""Side-by-side votes, and answers of raters in Gecko's templates."""

import csv
from statistics import fmean

import pytest

from scoregate.evaluation.side_by_side import choices, in_order, majorities, side_by_side


def votes(*items):
    """Rows of votes between x and y: a text for each item, a character for each rater."""
    cast = {"x": 1, "y": -1, "-": 0}
    return [
        {"item": item, "a": "x", "b": "y", "rater": rater, "vote": cast[vote]}
        for item, of_item in enumerate(items)
        for rater, vote in enumerate(of_item)
    ]


def found(*items):
    names = ([str(row[name]) for row in votes(*items)] for name in ["item", "a", "b"])
    return majorities(in_order(*names, [row["vote"] for row in votes(*items)]))


@pytest.mark.parametrize(
    ("raters", "majority"),
    [("xxy", 1), ("yy-", -1), ("x--", 0), ("xy-", 0), ("xy", 0), ("xxyy-", 0), ("x", 1)],
)
def test_the_most_frequent_vote_counts_and_a_tie_is_unsure(raters, majority):
    """As in Gecko's appendix D.1."""
    assert {("0", "x", "y"): majority} == found(raters)


def test_the_order_of_two_generators_in_a_row_does_not_matter():
    """A vote for b in (a, b) is one for a in (b, a)."""
    assert [(("1", "x", "y"), 1)] * 2 == in_order(["1", "1"], ["x", "y"], ["y", "x"], [1, -1])


def test_a_generator_is_better_if_it_is_preferred_more_often_than_the_other_and_than_unsure():
    """Both, and significantly; as in section 4.3."""
    [clear] = side_by_side(found(*["x"] * 20, *["y"] * 2))
    [turned] = side_by_side(found(*["y"] * 15, *["x"] * 2), 0.05)
    [unsure] = side_by_side(found(*["x"] * 15, *["-"] * 16))
    [few] = side_by_side(found(*["x"] * 3))

    assert (">", 20, 2, 0) == (clear.relation, clear.wins_a, clear.wins_b, clear.unsure)
    assert "<" == turned.relation
    assert ("=", 16) == (unsure.relation, unsure.unsure)
    assert unsure.p < 0.001
    assert "=" == few.relation


def test_a_metrics_accuracy_is_over_the_preferences():
    """A tie is wrong, and a comparison without a score is counted apart."""
    scores = {
        ("0", "x"): 0.3,
        ("0", "y"): 0.1 + 0.2 - 1,
        ("1", "x"): 0.3,
        ("1", "y"): 0.1 + 0.2,
        ("2", "x"): 1,
    }
    result = choices(found("x", "x", "x", "-"), scores)

    assert (0.5, 0.75, 2, 1, 1, 1) == (
        result.accuracy,
        result.accuracy_ties_half,
        result.comparisons,
        result.correct,
        result.ties_metric,
        result.missing,
    )


def test_the_command_compares_several_metrics_with_the_votes(written, evaluate):
    """By the scores of a second file."""
    pictures = [
        {"item": item, "model": model, "m": (model == "x") + item, "n": (model == "y") + item}
        for item in range(2)
        for model in "xy"
    ]
    file = written(pictures, "pictures.csv")
    result = evaluate(
        *("sxs", "--votes", written(votes("xx", "xx"), "votes.csv"), "--rater", "rater"),
        *("--scores", file, "--metric", "m", "--metric", "n"),
    )

    assert {"m": 1.0, "n": 0.0} == {row["metric"]: row["accuracy"] for row in result["accuracy"]}
    assert dict.fromkeys(["nominal", "ordinal", "interval"]) == result["alpha"]
    assert (2, 2, 4, 0) == tuple(result[name] for name in ("comparisons", "preferences", "votes", "unsure"))


def test_a_rater_with_two_votes_about_two_pictures_is_refused(refused, written):
    """Also if the second names the generators in the other order; otherwise both would count."""
    [first, *rest] = votes("xx", "xy")
    twice = [first, first | {"a": "y", "b": "x", "vote": -1}, *rest]
    line = "column rater: 0 voted 2 times about x and y for 0"

    assert line in refused("evaluate", "sxs", "--votes", written(twice), "--rater", "rater")


def test_a_metric_whose_sign_is_turned_is_marked(written, evaluate):
    """Of those that are compared with votes."""
    pictures = [{"item": 0, "model": model, "m": ord(model)} for model in "xy"]
    command = (
        "sxs",
        "--votes",
        written(votes("xx"), "votes.csv"),
        "--scores",
        written(pictures),
        "--metric",
        "m",
    )
    plain, turned = evaluate(*command)["accuracy"], evaluate(*command, "--lower-is-better")["accuracy"]

    assert [(0, None), (1, True)] == [
        (row["accuracy"], row.get("lower_is_better")) for [row] in (plain, turned)
    ]


def test_metrics_have_intervals_and_are_compared_on_the_comparisons_of_both(written, evaluate):
    """The second is right in half of 40 comparisons, and lacks another one."""
    pictures = [
        {"item": item, "model": model, "m": int(model == "x"), "n": int((model == "x") == (item < 20))}
        for item in range(40)
        for model in "xy"
    ]
    pictures += [{"item": 40, "model": model, "m": int(model == "x"), "n": None} for model in "xy"]
    files = written(votes(*["x"] * 41), "votes.csv"), written(pictures, "pictures.csv")
    command = ("sxs", "--votes", files[0], "--scores", files[1], "--metric", "m", "--metric", "n")
    found, without = evaluate(*command), evaluate(*command, "--bootstrap", 0)
    [m, n] = found["accuracy"]

    assert ([41 / (41 + 3.841459), 1], 0.5) == (pytest.approx(m["interval"]["accuracy"]), n["accuracy"])
    assert 0.3 < n["interval"]["accuracy"][0] < 0.5 < n["interval"]["accuracy"][1] < 0.7
    assert [("m", "n", 0.5)] * 2 == [
        (each["a"], each["b"], each["difference"]) for each in found["differences"]
    ]
    assert all(each["p"] < 0.01 for each in found["differences"])
    assert (40, 0) == (found["compared"], found["seed"])
    assert "differences" not in without
    assert not any("interval" in row for row in without["accuracy"])


def test_comparisons_of_one_item_are_drawn_together(written, evaluate):
    """Ten items with three comparisons each vary as ten items do, and few are cautioned of."""
    pairs = [("x", "y"), ("x", "z"), ("y", "z")]
    cast = [{"item": item, "a": a, "b": b, "vote": 1} for item in range(10) for a, b in pairs]
    pictures = [
        {"item": item, "model": model, "m": -place if item < 5 else place}
        for item in range(10)
        for place, model in enumerate("xyz")
    ]
    files = written(cast, "votes.csv"), written(pictures, "pictures.csv")
    found = evaluate("sxs", "--votes", files[0], "--scores", files[1], "--metric", "m")
    [row] = found["accuracy"]

    assert (30, False) == (row["comparisons"], "caution" in row)
    low, high = row["interval"]["accuracy"]
    assert {low, high} <= {number / 10 for number in range(11)}
    assert high - low >= 0.5


def test_the_order_of_two_generators_in_a_row_does_not_matter_for_the_raters_agreement(written, evaluate):
    """Each rater may have seen them in another order."""
    rows = votes("xx", "yy", "xy", "--")
    turned = [row | {"a": "y", "b": "x", "vote": -row["vote"]} if row["rater"] else row for row in rows]
    found = [
        evaluate("sxs", "--votes", written(each, f"{name}.csv"), "--rater", "rater")["alpha"]
        for name, each in (("rows", rows), ("turned", turned))
    ]

    assert found[0] == found[1]
    assert 0 < found[0]["nominal"] < 1


def answer(template, model, unit, rater, text):
    return {"template": template, "item": "i", "model": model, "unit": unit, "rater": rater, "answer": text}


ANSWERS = [
    answer("wl", "x", "0", "r", "Aligned"),
    answer("wl", "x", "1", "r", "not aligned"),
    answer("wl", "x", "0", "s", "1"),
    answer("wl", "x", "1", "s", "unsure"),
    answer("dsg", "x", "0", "r", "no"),
    answer("dsg", "x", "1", "r", "invalid"),
    answer("dsg", "x", "2", "r", "Subjective"),
    answer("dsg", "x", "3", "r", "yes"),
    answer("dsg", "y", "0", "r", "yes"),
    answer("likert", "x", "", "r", "2"),
    answer("likert", "x", "", "s", "4"),
    answer("likert", "y", "", "s", "6"),
]


def test_answers_become_scores_by_template(written, evaluate, tmp_path):
    """The mean over raters of their means; a picture that nobody is sure about has none."""
    out = tmp_path / "scores.csv"
    found = evaluate("templates", "--answers", written(ANSWERS), "--out", out)

    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [
        {"item": "i", "model": "x", "wl": str(fmean([0.5, 1])), "dsg": "0.5", "likert": "0.5"},
        {"item": "i", "model": "y", "wl": "", "dsg": "1.0", "likert": ""},
    ] == rows
    assert {"wl": 1, "dsg": 2, "likert": 1} == found["pictures"]


def test_each_template_has_its_unsure_and_invalid_answers(written, evaluate):
    """Invalid questions are in no share."""
    rows = evaluate("templates", "--answers", written(ANSWERS))["templates"]

    whole = {row["template"]: row for row in rows if row["model"] == "all"}
    shares = {name: (row["answers"], row["invalid"], row["unsure"]) for name, row in whole.items()}
    assert {"wl": (4, 0, 0.25), "dsg": (4, 1, 0.25), "likert": (3, 0, pytest.approx(1 / 3))} == shares
    assert (2 / 3, 0.5) == pytest.approx((whole["wl"]["mean"], whole["likert"]["mean"]))
    assert ["all", "x", "y"] == [row["model"] for row in rows if row["template"] == "dsg"]


def test_templates_are_correlated_over_the_pictures_of_both(written, evaluate):
    """A template and its opposite: -1."""
    rows = [
        answer(template, model, "", "r", str(rating))
        for template, ratings in (("likert", (1, 2, 5)), ("dsg", (1, 1, 0)))
        for model, rating in zip("xyz", ratings, strict=True)
    ]
    [row] = evaluate("templates", "--answers", written(rows))["correlations"]

    assert ("likert", "dsg", 3) == (row["a"], row["b"], row["pictures"])
    assert row["pearson"] < -0.9


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"answer": "maybe"}, "row 1, column answer: 'maybe' is no answer of wl"),
        ({"template": "sxs"}, "'sxs' is no template: wl, dsg, likert"),
        ({"unit": "1"}, "column unit: r answered 2 times: wl, i, x, 1"),
    ],
)
def test_answers_that_no_template_has_are_refused(refused, written, change, line):
    """With file and column."""
    assert line in refused("evaluate", "templates", "--answers", written([ANSWERS[0] | change, *ANSWERS[1:]]))


@pytest.mark.parametrize(
    ("change", "more", "line"),
    [
        ({"vote": 2}, (), "row 1, column vote: '2' is no vote"),
        ({"b": "x"}, (), "column b: x is compared with itself"),
        ({}, ("--metric", "m"), "--metric needs --scores"),
    ],
)
def test_votes_that_compare_nothing_are_refused(refused, written, change, more, line):
    """With file and column."""
    rows = [row | change for row in votes("xx")]

    assert line in refused("evaluate", "sxs", "--votes", written(rows), *more)


def test_the_better_of_two_is_found_by_ranks_or_by_means(written, evaluate):
    """Small differences in favour of x are many, and those of y few and large."""
    rows = [
        {"item": item, "model": model, "m": value}
        for item in range(20)
        for model, value in (("x", 0.1 * item / 20), ("y", 100.0 if item < 3 else 0.0))
    ]
    call = ("ordering", "--scores", written(rows), "--value", "m", "--model", "model", "--item", "item")
    by_ranks, by_means = (
        evaluate(*call, "--alpha", "0.5", "--better", better)["pairs"][0] for better in ("ranks", "means")
    )

    assert (">", "<") == (by_ranks["relation"], by_means["relation"])
