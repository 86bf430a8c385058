"""`scoregate evaluate`: its objects, tables and pictures, and how it refuses."""

import pytest

from scoregate.cli.main import main
from scoregate.evaluation.figures import FIGURES

ROWS = [
    {
        "m": (unit * 7 + rater * 3) % 10 / 10,
        "h": (unit * 5 + rater) % 5 + 1,
        "good": (unit + rater) % 2,
        "model": f"model {rater}",
        "rater": f"rater {rater}",
        "item": f"item {unit}",
        "node": f"{rater}a",
        "caption": rater // 2,
        "image": rater % 2,
        "tag": "counting",
        "prompt": f"prompt {unit}",
        "correct": rater % 2,
        "a": "A",
        "b": "B",
        "vote": (unit + rater) % 3 - 1,
        "template": "likert",
        "answer": (unit * 5 + rater) % 6 + 1,
    }
    for unit in range(6)
    for rater in range(4)
]
SCORES = ("--metric", "m")
FEW = ("--bootstrap", "20")  # resamples: here no interval is the subject
CALLS = {
    "ts2": ("--scores", *SCORES, "--graph", "item", "--node", "node", "--version", "released"),
    "agreement": ("--scores", *SCORES, "--human", "h", *FEW),
    "means": ("--scores", *SCORES, "--model", "model"),
    "ordering": ("--scores", "--value", "m", "--model", "model", "--item", "item", "--human", "h"),
    "alpha": ("--ratings", "--unit", "item", "--rater", "rater", "--rating", "h", "--bootstrap", "5"),
    "winoground": ("--scores", *SCORES, "--item", "item"),
    "auroc": ("--scores", *SCORES, "--label", "good"),
    "preference": ("--scores", *SCORES, "--human", "h", "--group", "item"),
    "convergence": ("--ratings", "--unit", "item", "--rater", "rater", "--rating", "h"),
    "reliable": ("--ratings", "--prompt", "item", "--model", "tag", "--rating", "h"),
    "geneval": ("--results",),
    "sxs": ("--votes", "--rater", "rater"),
    "templates": ("--answers",),
}
KEYS = {
    "ts2": "rank sep delta delta_raw std graphs images dropped partitions",
    "agreement": "n pearson spearman kendall accuracy accuracy_at_0 epsilon pairs concordant discordant "
    "ties_human ties_metric ties_both",
    "ordering": "pairs order agreement",
    "means": "mean pictures",
    "alpha": "nominal ordinal interval units ratings out_of_scale extreme_disagreement intervals",
    "geneval": "tasks overall prompts_correct kappa",
    "sxs": "pairs alpha unsure comparisons preferences votes",
    "templates": "templates correlations pictures",
}


def call(name, path):
    """The figure's arguments, with the file behind the first."""
    first, *rest = CALLS[name]
    return [name, first, path, *rest]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_one_object(written, evaluate, name):
    """With the keys that scripts rely on, and what was left out."""
    found = evaluate(*call(name, written(ROWS)))

    assert {*KEYS.get(name, "").split(), "dropped"} <= set(found)
    assert 0 == found["dropped"]


def test_a_pair_of_generators_has_its_keys(written, evaluate):
    """In the order of the table."""
    [pair, *_] = evaluate(*call("ordering", written(ROWS)))["pairs"]

    assert ["a", "b", "n", "zeros", "w_plus", "w_minus", "z", "p", "relation"] == list(pair)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_a_table_for_people_and_a_picture(written, capsys, tmp_path, name):
    """The picture has something in it."""
    picture = tmp_path / "figure.svg"
    assert 0 == main(["evaluate", *call(name, written(ROWS)), "--plot", str(picture)])

    assert capsys.readouterr().out.startswith("FIGURE")
    assert "<path" in picture.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_a_table_for_a_paper(written, capsys, name):
    """With a head and a line; an interval may be a figure of its own."""
    assert 0 == main(["evaluate", *map(str, call(name, written(ROWS))), "--format", "csv"])

    assert 2 == len(capsys.readouterr().out.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["agreement", "ordering", "alpha", "auroc", "preference", "winoground"])
def test_a_row_with_an_empty_cell_is_counted(written, evaluate, name):
    """It is never dropped in silence."""
    empty = dict.fromkeys(ROWS[0]) | {"item": "item 9"}

    assert 1 == evaluate(*call(name, written([*ROWS, empty])))["dropped"]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("ts2", {"m": 1}, "column m: all 24 values are 1"),
        ("ts2", {"node": "x"}, "column node: 'x' does not begin"),
        ("ts2", {"item": ""}, "row 1, column item: the cell is empty"),
        ("agreement", {"m": 0.5}, "column m: all 24 values are 0.5"),
        ("agreement", {"h": 5}, "column h: all 24 values are 5"),
        ("agreement", {"h": ""}, "column m: no row has a value"),
        ("ordering", {"m": 1}, "column m: all values are 1"),
        ("ordering", {"model": "one"}, "column model: there is one generator, one"),
        ("alpha", {"rater": "one"}, "column rater: there is one rater, one"),
        ("alpha", {"item": "x"}, "column item: rater 0 rated x 6 times"),
        ("alpha", {"h": 3}, "column h: all 24 ratings are 3"),
        ("convergence", {"rater": "one"}, "column rater: there is one rater"),
        ("reliable", {"h": 2}, "column h: all 24 values are 2"),
        ("auroc", {"good": 1}, "column good: all 24 labels are 1"),
        ("auroc", {"good": "maybe"}, "row 1, column good: 'maybe' is not a label"),
        ("preference", {"item": None}, "column m: no row has a value"),
        ("winoground", {"caption": 2}, "column caption: '2' is neither 0 nor 1"),
        ("winoground", {"caption": 0}, "column item: item 0 has two scores"),
        ("geneval", {"tag": "cats"}, "column tag: 'cats' is no task"),
    ],
)
def test_a_column_that_says_nothing_is_refused_by_name(written, refused, name, change, said):
    """With status 2 and one line."""
    rows = [row | change for row in ROWS]

    assert said in refused("evaluate", *call(name, written(rows)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scale", "5:1"), "a scale is two numbers"),
        (("--scale", "1"), "a scale is two numbers"),
        (("--alpha", "0"), "above 0"),
        (("--zero-method", "zsplit"), "invalid choice"),
    ],
)
def test_wrong_usage_is_said_by_the_parser(written, capsys, arguments, said):
    """Status 2, as everywhere."""
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", *call("ordering", written(ROWS)), *arguments])
    assert said in capsys.readouterr().err


def test_ratings_off_the_scale_are_counted(written, evaluate):
    """By alpha and by ordering."""
    path = written(ROWS)
    outside = sum(row["h"] == 5 for row in ROWS)

    assert outside == evaluate(*call("alpha", path), "--scale", "1:4")["out_of_scale"]
    assert outside == evaluate(*call("ordering", path), "--scale", "1:4")["out_of_scale"]


def test_names_cannot_steer_the_terminal(written, capsys):
    """Escapes in a generator's name come back as text."""
    rows = [row | {"model": f"{row['model']}\x1b[31m"} for row in ROWS]
    assert 0 == main(["evaluate", *call("ordering", written(rows))])

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "model 0\\x1b[31m" in out


def test_without_the_extra_one_line_says_what_to_install(written, refused, without):
    """It names the package that is missing."""
    without("numpy")

    assert "evaluate needs numpy: pip install './client[evaluate]'" in refused(
        "evaluate", *call("auroc", written(ROWS))
    )


def test_a_correlation_of_many_values_says_that_it_needs_scipy(written, refused, evaluate, without):
    """A table of few ratings is counted without it."""
    many = [{"m": index / 200, "h": index * 7 % 200} for index in range(200)]
    without("scipy")

    assert 24 == evaluate(*call("agreement", written(ROWS)))["n"]
    assert "values needs SciPy: pip install './client[evaluate]'" in refused(
        "evaluate", *call("agreement", written(many))
    )
