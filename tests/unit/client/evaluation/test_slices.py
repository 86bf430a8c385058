"""Figures by the values of a column, of several metrics, and as tables for papers."""

import json

import pytest

from scoregate.cli.main import main
from scoregate.evaluation.agreement import correlation
from tests.unit.client.evaluation.conftest import RELEASED

pytestmark = pytest.mark.slow

ROWS = [
    {"metric": score, "other": 1 - score, "human": rating, "skills": skills}
    for score, rating, skills in [
        (0.1, 1, ["count"]),
        (0.5, 2, ["count", "color"]),
        (0.4, 3, ["color", "count"]),
        (0.9, 5, ["color"]),
        (0.7, 4, []),
    ]
]
COLUMNS = ("--metric", "metric", "--human", "human")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def test_a_row_counts_under_each_of_its_tags(evaluate, table):
    """A row without tags counts in the figures of all rows only."""
    found = evaluate("agreement", "--scores", table, *COLUMNS, "--by", "skills", "--bootstrap", 0)

    of_count = correlation([0.1, 0.5, 0.4], [1, 2, 3])
    assert {"color", "count"} == found["by"].keys()
    assert of_count.pearson == pytest.approx(found["by"]["count"]["pearson"])
    assert {"count": 3, "color": 3} == {tag: part["n"] for tag, part in found["by"].items()}
    assert (5, 1) == (found["n"], found["untagged"])
    assert "3 rows, fewer than 30" == found["by"]["count"]["caution"]


def test_means_by_skill_are_a_matrix_of_skill_and_generator(evaluate, tmp_path, capsys):
    """In every form of a table; a generator without a picture of a skill has an empty cell."""
    path = tmp_path / "scores.jsonl"
    models = ("x", "y", "x", "y", "y")
    path.write_text(
        "\n".join(json.dumps({**row, "model": model}) for row, model in zip(ROWS, models, strict=True))
    )
    command = ("means", "--scores", path, "--metric", "metric", "--model", "model", "--by", "skills")
    found = evaluate(*command)

    assert {"x": pytest.approx(0.25), "y": pytest.approx(0.7)} == found["mean"]
    assert {"x": pytest.approx(0.4), "y": pytest.approx(0.7)} == found["by"]["color"]["mean"]
    assert 0 == main(["evaluate", *map(str, command), "--format", "csv"])
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("by,x,y,")
    assert ["all", "color", "count"] == [line.partition(",")[0] for line in lines]


def test_a_list_in_a_csv_cell_is_json(evaluate, tmp_path):
    """Any other text is one tag."""
    path = tmp_path / "scores.csv"
    path.write_text('metric,human,skills\n.1,1,"[""a"", ""b""]"\n.2,2,a\n.3,2,"b, c"\n')

    found = evaluate("agreement", "--scores", path, *COLUMNS, "--by", "skills", "--bootstrap", 0)

    assert {"a": 2, "b": 1, "b, c": 1} == {tag: part["rows"] for tag, part in found["by"].items()}
    assert "error" in found["by"]["b"]


def test_intervals_hold_the_figure_and_repeat_with_the_seed(evaluate):
    """They are percentiles of drawings of rows."""
    released = ("agreement", "--scores", RELEASED / "tifa.csv.gz", "--human", "human_avg")
    command = (*released, "--metric", "tifa_vilt", "--bootstrap", 50)

    found = evaluate(*command)

    for name, (low, high) in found["interval"].items():
        assert low < found[name] < high
    assert found == evaluate(*command)
    assert found["interval"] != evaluate(*command, "--seed", 1)["interval"]


def test_metrics_are_compared_in_pairs(evaluate, table):
    """A metric and its opposite differ by twice the correlation, on every drawing."""
    found = evaluate("agreement", "--scores", table, *COLUMNS, "--metric", "other", "--bootstrap", 200)

    (apart,) = [each for each in found["differences"] if each["figure"] == "pearson"]
    assert 2 * found["metrics"]["metric"]["pearson"] == pytest.approx(apart["difference"])
    assert ("metric", "other") == (apart["a"], apart["b"])
    assert apart["p"] < 0.1


def test_means_of_two_metrics_have_no_table_of_differences(tmp_path, capsys):
    """They have no intervals."""
    path = tmp_path / "scores.csv"
    path.write_text("model,a,b\nx,1,2\ny,2,3\n", "utf-8")
    command = ("means", "--scores", str(path), "--metric", "a", "--metric", "b", "--model", "model")

    assert 0 == main(["evaluate", *command])
    assert ["METRIC", "a", "b"] == [line.split()[0] for line in capsys.readouterr().out.splitlines()]


def test_a_metric_does_not_differ_from_its_logit(evaluate, tmp_path):
    """Spearman's correlation is the same for both, so p is 1."""
    path = tmp_path / "scores.jsonl"
    rows = [row | {"other": row["metric"] ** 2} for row in ROWS]
    path.write_text("\n".join(map(json.dumps, rows)))

    found = evaluate("agreement", "--scores", path, *COLUMNS, "--metric", "other", "--bootstrap", 50)

    assert {1.0} == {each["p"] for each in found["differences"] if each["figure"] == "spearman"}


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("markdown", "| color | 3 | 0.5000 | 3 | "),
        ("latex", "color & 3 & 0.5000 & 3 & "),
        ("csv", "color,3,0.5,3,"),
    ],
)
def test_a_table_for_a_paper_has_a_row_for_each_value(capsys, table, form, line):
    """After the value and its number of rows stand the figures."""
    command = ["evaluate", "auroc", "--scores", str(table), "--metric", "metric", "--label", "good"]
    table.write_text("\n".join(json.dumps(row | {"good": row["human"] > 2}) for row in ROWS))

    assert 0 == main([*command, "--by", "skills", "--format", form, "--bootstrap", "20"])

    assert line in capsys.readouterr().out
